"""Graphs within graphs, a copy, and the body of a condition."""

from __future__ import annotations

import ctypes

import torch
from graph_driver import Handle, call, capture, conditional, graph_of, instantiate, launch

import bragg

x = torch.ones(1024, device="cuda")
y = torch.ones(1024, device="cuda")
x.add_(1).copy_(y)
torch.cuda.synchronize()
with bragg.scope("inner"), capture() as inner:
    x.add_(1)
    x.copy_(y)
    x.add_(1)
outer = graph_of(graph_of(inner), inner)
copy = Handle()
call("cuGraphClone", ctypes.byref(copy), outer)
for graph in (inner, outer):
    call("cuGraphDestroy", graph)
with bragg.scope("nested"):
    launch(instantiate(copy), 10)

graph, body = conditional()
with bragg.scope("body"), capture(into=body):
    x.add_(1)
with bragg.scope("conditional"):
    launch(instantiate(graph), 10)
