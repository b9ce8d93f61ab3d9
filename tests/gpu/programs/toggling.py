"""Prints how many of three times ten kernels were recorded, the second ten while the session was deactivated."""

from __future__ import annotations

import torch

import bragg
from bragg.model import FrameKind


def ten_kernels() -> None:
    for _ in range(10):
        x.add_(1)
    torch.cuda.synchronize()


x = torch.zeros(1024, device="cuda")
ten_kernels()
session = bragg.start("toggling.bragg", backend="cuda", context="shadow")
ten_kernels()
session.deactivate()
ten_kernels()
session.activate()
ten_kernels()
profile = bragg.stop(session)
print(int(profile.own("gpu_count")[profile.tree.kind == FrameKind.KERNEL].sum()))
