"""Starts a recording after PyTorch was imported and the GPU was used."""

from __future__ import annotations

import numpy as np
import torch

import bragg
from bragg.model import FrameKind

x = torch.ones(64, 64, device="cuda")
torch.mm(x, x)
session = bragg.start("late.bragg", backend="cuda", framework="torch")
for _ in range(3):
    torch.mm(x, x)
torch.cuda.synchronize()
profile = session.stop()
tree, counts = profile.tree, profile.own("gpu_count")
for node in np.flatnonzero((tree.kind == FrameKind.KERNEL) & (counts > 0)):
    operators = [tree.label(above) for above in tree.path(int(node)) if tree.kind[above] == FrameKind.OPERATOR]
    print(*operators, int(counts[node]))
