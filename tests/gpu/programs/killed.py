"""Launches a hundred kernels and is killed three flush intervals later."""

from __future__ import annotations

import os
import signal
import time

import torch

import bragg

x = torch.zeros(1024, device="cuda")
with bragg.scope("work"):
    for _ in range(100):
        x.add_(1)
    torch.cuda.synchronize()
time.sleep(3)
os.kill(os.getpid(), signal.SIGKILL)
