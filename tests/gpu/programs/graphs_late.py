"""Records itself after it has captured; prints paths of kernels and their counts. Argument: level of graphs."""

from __future__ import annotations

import json
import sys

import torch

import bragg
from bragg.model import FrameKind

x = torch.ones(1024, device="cuda")
x.add_(1)
torch.cuda.synchronize()


def captured(name: str) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with bragg.scope(name), torch.cuda.graph(graph):
        x.add_(1)
    return graph


early = captured("early")
early.replay()
torch.cuda.synchronize()
session = bragg.start("late.bragg", backend="cuda", context="shadow", framework="off", graphs=sys.argv[1])
late = captured("late")
with bragg.scope("late first"):
    for _ in range(10):
        late.replay()
    torch.cuda.synchronize()
with bragg.scope("early"):
    for _ in range(20):
        early.replay()
    torch.cuda.synchronize()
with bragg.scope("late again"):
    for _ in range(30):
        late.replay()
    torch.cuda.synchronize()
profile = session.stop()
tree, counts = profile.tree, profile.own("gpu_count")
paths = {
    "/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:-1]): int(counts[node])
    for node in range(len(counts))
    if tree.kind[node] == FrameKind.KERNEL and counts[node] > 0
}
replayed = {
    path: count for path, count in paths.items() if path != "late"
}  # PyTorch prepares its captures with kernels
print(json.dumps({"paths": replayed, "graphs": profile.meta["cuda"]["graphs"]}))
