"""Two instantiations of one graph, one of which is updated by graphs of the same shape."""

from __future__ import annotations

import torch
from graph_driver import Handle, call, capture, instantiate, launch, update

import bragg

x = torch.ones(1024, device="cuda")
x.add_(1).mul_(2).zero_()
torch.cuda.synchronize()


def captured(name: str, factor: float) -> Handle:
    """A multiplication, and an addition that is the same in all graphs."""
    with bragg.scope(name), capture() as graph:
        x.add_(1)
        x.mul_(factor)
    return graph


first = captured("first", 2)
updated, kept = instantiate(first), instantiate(first)
with bragg.scope("before"):
    launch(updated, 2)
    launch(kept, 3)
for name, factor in (("second", 3.0), ("third", 3.0)):
    graph = captured(name, factor)
    update(updated, graph)
    call("cuGraphDestroy", graph)
    with bragg.scope(f"after {name}"):
        launch(updated, 4)
        launch(kept, 5)
for executable in (updated, kept):
    call("cuGraphExecDestroy", executable)
