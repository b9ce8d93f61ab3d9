"""The driver's graph functions, for what PyTorch's graphs do not show."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

Handle = ctypes.c_void_p
_CUDA = ctypes.CDLL("libcuda.so.1")
_RELAXED = 2
_CONDITIONAL, _IF, _DEFAULT_EACH_LAUNCH = 13, 0, 1


def call(name: str, *arguments: object) -> None:
    """Call a driver function that must succeed."""
    result = getattr(_CUDA, name)(*arguments)
    assert result == 0, f"{name}: {result}"


@contextmanager
def capture(into: Handle | None = None) -> Iterator[Handle]:
    """Capture what PyTorch does; the handle is the graph once the body has ended."""
    graph = Handle()
    stream = torch.cuda.Stream()
    raw = Handle(stream.cuda_stream)
    if into is None:
        call("cuStreamBeginCapture_v2", raw, _RELAXED)
    else:
        call("cuStreamBeginCaptureToGraph", raw, into, None, None, ctypes.c_size_t(0), _RELAXED)
    with torch.cuda.stream(stream):
        yield graph
    call("cuStreamEndCapture", raw, ctypes.byref(graph))


def instantiate(graph: Handle) -> Handle:
    executable = Handle()
    call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    return executable


def launch(executable: Handle, count: int = 1) -> None:
    """Launch an executable graph and wait for it."""
    stream = Handle(torch.cuda.current_stream().cuda_stream)
    for _ in range(count):
        call("cuGraphLaunch", executable, stream)
    torch.cuda.synchronize()


def update(executable: Handle, graph: Handle) -> None:
    call("cuGraphExecUpdate_v2", executable, graph, (ctypes.c_uint64 * 3)())


def graph_of(*children: Handle) -> Handle:
    """A graph that runs copies of other graphs."""
    graph, node = Handle(), Handle()
    call("cuGraphCreate", ctypes.byref(graph), 0)
    for child in children:
        call("cuGraphAddChildGraphNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), child)
    return graph


class _ConditionalNode(ctypes.Structure):
    """CUgraphNodeParams with its union as for a conditional node."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("condition", ctypes.c_ulonglong),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(Handle)),
        ("context", Handle),
        ("rest", ctypes.c_longlong * 26),
    )


def conditional() -> tuple[Handle, Handle]:
    """A graph with one conditional node whose condition holds, and its body to capture into."""
    graph, context, condition, node = graph_of(), Handle(), ctypes.c_ulonglong(), Handle()
    call("cuCtxGetCurrent", ctypes.byref(context))
    call("cuGraphConditionalHandleCreate", ctypes.byref(condition), graph, context, 1, _DEFAULT_EACH_LAUNCH)
    params = _ConditionalNode(type=_CONDITIONAL, condition=condition.value, kind=_IF, size=1, context=context)
    call("cuGraphAddNode_v2", ctypes.byref(node), graph, None, None, ctypes.c_size_t(0), ctypes.byref(params))
    return graph, Handle(params.bodies[0])
