"""Training steps of a small network, ten or as many as asked for; with `torch`, torch.profiler times the kernels."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import bragg


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    with bragg.scope("forward"):
        loss = model(x).square().mean()
    with bragg.scope("backward"):
        loss.backward()
    with bragg.scope("update"):
        optimizer.step()
        optimizer.zero_grad()


def main(steps: int) -> None:
    with bragg.scope("setup"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        x = torch.randn(4096, 4096, device="cuda")
    for _ in range(steps):
        train_step(model, optimizer, x)
    torch.cuda.synchronize()


def kernels_of(profiler: torch.profiler.profile) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        return [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]


with_torch = sys.argv[1:] == ["torch"]
steps = int(sys.argv[1]) if sys.argv[1:] and not with_torch else 10
profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
with profiler if with_torch else contextlib.nullcontext():
    main(steps)
if with_torch:
    kernels = kernels_of(profiler)
    print(len(kernels), round(1e3 * sum(kernel["dur"] for kernel in kernels)))
