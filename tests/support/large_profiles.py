"""Profiles of the size that training runs give, for limits of time and size."""

from __future__ import annotations

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile

_N_FUNCTIONS, _N_KERNELS = 900, 300
_KERNEL = "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_{}<float>, std::array<char*, 3ul>>(int)"


def call_tree(n_nodes: int) -> Profile:
    """Python frames to a depth of about a dozen, and kernels with times as leaves."""
    random = np.random.default_rng(0)
    n_inner = n_nodes // 2
    above = (np.arange(1, n_nodes) * random.random(n_nodes - 1) ** 0.7).astype(np.int32)
    parent = np.concatenate([[-1], above[: n_inner - 1], above[n_inner - 1 :] % n_inner])
    functions = random.integers(1, 1 + _N_FUNCTIONS, n_inner - 1)
    kernels = random.integers(1 + _N_FUNCTIONS, 1 + _N_FUNCTIONS + _N_KERNELS, n_nodes - n_inner)
    tree = CallTree(parent, np.concatenate([[0], functions, kernels]), _frames())
    is_kernel = tree.kind == FrameKind.KERNEL
    time_ns = np.where(is_kernel, random.lognormal(10, 2, n_nodes).astype(np.int64), 0)
    metrics = {
        "gpu_time": Metric("gpu_time", "ns", MetricKind.INCLUSIVE, time_ns),
        "gpu_count": Metric("gpu_count", "1", MetricKind.INCLUSIVE, is_kernel.astype(np.int64)),
    }
    return Profile({}, tree, metrics)


def _frames() -> FrameTable:
    n_frames = 1 + _N_FUNCTIONS + _N_KERNELS
    kinds = [FrameKind.ROOT, *[FrameKind.PYTHON] * _N_FUNCTIONS, *[FrameKind.KERNEL] * _N_KERNELS]
    names = [f"function_{row}" for row in range(_N_FUNCTIONS)]
    files = [f"package/module_{row % 40}.py" for row in range(_N_FUNCTIONS)]
    return FrameTable(
        kind=np.array(kinds, np.uint8),
        name=["root", *names, *(_KERNEL.format(row) for row in range(_N_KERNELS))],
        file=["", *files, *[""] * _N_KERNELS],
        line=np.arange(n_frames, dtype=np.int32),
        device=np.where(np.array(kinds) == FrameKind.KERNEL, 0, -1).astype(np.int32),
    )
