"""A process that forks before it uses the GPU; then both use it."""

from __future__ import annotations

import os
import sys

import torch

import bragg

child = os.fork()
with bragg.scope("child" if child == 0 else "parent"):
    x = torch.zeros(1024, device="cuda")
    for _ in range(30):
        x.add_(1)
    torch.cuda.synchronize()
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
