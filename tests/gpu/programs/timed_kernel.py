"""Launches kernels of `tests/support/timed_kernels.py` often; says how often each result was equal, bit for bit.

Usage: timed_kernel.py NAME[:LAUNCHES]...; with a number, a CUDA graph with the kernel is replayed instead, after so
many launches outside of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.support import timed_kernels as kernels

SIZE, LAUNCHES = 8192, 60
SPOILT_ROW = 32


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def launcher(name: str) -> tuple[Callable[[], object], torch.Tensor]:
    """What launches the kernel, and where its result is."""
    if name == "tuned":
        x = torch.randn(1 << 26, device="cuda")
        y = torch.empty_like(x)
        tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (128, 256, 512, 1024, 2048, 4096)], ["n"])
        copy = tuned(kernels.copy)
        return lambda: copy[lambda meta: ((1 << 26) // meta["BLOCK"],)](x, y, 1 << 26), y
    is_spoilt = name == "softmax_spoilt"
    name = "softmax" if is_spoilt else name
    kernel, types, constants, options = kernels.LAUNCHED[name]
    if name.startswith("copy"):
        x = torch.randn(1 << 26, device="cuda")
        y = torch.empty_like(x)
        return lambda: kernel[(1 << 16,)](x, y, 1 << 26, **constants, **options), y
    if name == "softmax":
        x = half(SIZE, SIZE)
        if is_spoilt:
            x[SPOILT_ROW, 5] = float("inf")
        y = torch.empty_like(x)
        return lambda: kernel[(SIZE,)](x, y, SIZE, **constants, **options), y
    if name == "attention":
        q, k, v = (half(2 * SIZE, 64) for _ in range(3))
        out = torch.empty_like(q)
        return lambda: kernel[(128,)](q, k, v, out, 2 * SIZE, 0.125, **constants, **options), out
    a, b, c = half(SIZE, SIZE), half(SIZE, SIZE), half(SIZE, SIZE)
    tiles = {"a": [128, 64], "b": [64, 128], "c": [128, 128]}
    given = [
        TensorDescriptor.from_tensor(each, tile) if types[parameter].startswith("tensordesc") else each
        for each, (parameter, tile) in zip((a, b, c), tiles.items(), strict=True)
    ]
    grid = ((SIZE // 128) ** 2,)
    return lambda: kernel[grid](*given, SIZE, SIZE, SIZE, **constants, **options), c


def replayer(name: str, launch: Callable[[], object], launches: int) -> Callable[[], object]:
    """What replays a graph with one launch and prints how long the GPU took."""
    for _ in range(launches):
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def replay() -> None:
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        print(f"{name}: a replay took {begin.elapsed_time(end) * 1e6:.0f} ns")

    return replay


def compare(name: str, launches: str) -> None:
    """Launch a kernel, or replay a graph with it."""
    torch.manual_seed(0)
    launch, result = launcher(name)
    launch()
    first = result.clone()
    run, times = (replayer(name, launch, int(launches)), 10) if launches else (launch, LAUNCHES)
    n_equal = 0
    for _ in range(times):
        result.zero_()
        run()
        n_equal += torch.equal(first, result)
    print(f"{name}: {n_equal} of {times} results are equal")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        name, _, launches = argument.partition(":")
        compare(name, launches)
