"""Training of a network whose kernels are long; with `torch`, torch.profiler tells the GPU time of each operator.

Prints a JSON object then: of each operator the number of kernels, copies and sets that it launched itself, and their
time in ns.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import defaultdict

import torch
from torch import nn

STEPS = 30
# Told beside the operator that is under way, with its kernels once more, as are calls of CUDA's runtime.
LOADING = {"Lazy Function Loading", "Runtime Triggered Module Loading"}


def main() -> None:
    torch.manual_seed(0)
    with torch.device("cuda"):  # copies from the host take as long as they like
        model = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 4096))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(4096, 4096, device="cuda")
    for _ in range(STEPS):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


with_torch = sys.argv[1:] == ["torch"]
activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
profiler = torch.profiler.profile(activities=activities)
with profiler if with_torch else contextlib.nullcontext():
    main()
if with_torch:
    launched: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for event in [
        event for event in profiler.events() if event.name not in LOADING and not event.name.startswith("cuda")
    ]:
        for kernel in event.kernels:
            count, time_ns = launched[event.name]
            launched[event.name] = count + 1, time_ns + round(1e3 * kernel.duration)
    print(json.dumps(launched))
