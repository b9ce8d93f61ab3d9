"""A small CUDA graph, replayed 100,000 times and captured anew now and then; prints the growth of the process, kB."""

from __future__ import annotations

from pathlib import Path

import torch

import bragg

REPLAYS, CAPTURES = 100_000, 100

x = torch.ones(16, device="cuda")
x.add_(1)
torch.cuda.synchronize()


def resident_kb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def replay_some() -> None:
    graph = torch.cuda.CUDAGraph()
    with bragg.scope("capture", metrics={"work": 1}), torch.cuda.graph(graph):
        x.add_(1)
        x.mul_(1)
    with bragg.scope("replay"):
        for _ in range(REPLAYS // CAPTURES):
            graph.replay()
    torch.cuda.synchronize()


for _ in range(CAPTURES // 2):
    replay_some()
half_kb = resident_kb()
for _ in range(CAPTURES // 2):
    replay_some()
print(resident_kb() - half_kb)
