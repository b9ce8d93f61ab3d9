"""Kernels whose PTX is instrumented in tests, compiled by Triton for a GPU that need not be there."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import bragg

__all__ = ["KERNELS", "LAUNCHED", "attention", "compiled", "copy", "line_of", "matmul", "matmul_tma", "softmax"]


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    """y = x + 1; the only block has no loop."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) + 1, at < n)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    """Rows that do not fit a block: two loops."""
    row = tl.program_id(0)
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, -float("inf")).to(tl.float32)
        higher = tl.maximum(highest, value)
        total = total * tl.exp(highest - higher) + tl.exp(value - higher)
        highest = higher
    top = tl.max(highest, 0)
    whole = tl.sum(total * tl.exp(highest - top), 0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, 0).to(tl.float32)
        tl.store(y + row * columns + at, tl.exp(value - top) / whole, at < columns)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Pointers: cp.async, a pipeline."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    rows = (pid // tiles) * BM + tl.arange(0, BM)
    columns = (pid % tiles) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tensor descriptors: TMA, barriers in shared memory, warp-group products on Hopper."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    row, column = (pid // tiles) * BM, (pid % tiles) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        total = tl.dot(a.load([row, step * BK]), b.load([step * BK, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_specialized(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul_tma`; other warps load than multiply."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    row, column = (pid // tiles) * BM, (pid % tiles) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(tl.cdiv(K, BK), warp_specialize=True):
        total = tl.dot(a.load([row, step * BK]), b.load([step * BK, column]), total)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """One head, not causal."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        at = start + tl.arange(0, BN)
        key = tl.load(k + at[None, :] * D + inner[:, None])
        scores = tl.dot(query, key) * scale
        higher = tl.maximum(highest, tl.max(scores, 1))
        weight = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + at[:, None] * D + inner[None, :])
        result = tl.dot(weight.to(tl.float16), value, result * shrink[:, None])
        highest = higher
    tl.store(out + rows[:, None] * D + inner[None, :], (result / total[:, None]).to(tl.float16))


@triton.jit
def matmul_scoped(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul_tma`, with scopes."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    row, column = (pid // tiles) * BM, (pid % tiles) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        with bragg.kernel_scope("load"):
            left = a.load([row, step * BK])
            right = b.load([step * BK, column])
        with bragg.kernel_scope("multiply"):
            total = tl.dot(left, right, total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_scoped_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul`, with scopes."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    rows = (pid // tiles) * BM + tl.arange(0, BM)
    columns = (pid % tiles) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        with bragg.kernel_scope("load"):
            x = tl.load(left)
            y = tl.load(right)
        with bragg.kernel_scope("multiply"):
            total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def matmul_valued(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul_scoped`, with values: the turn, a quarter of the row, a constant."""
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BN)
    row, column = (pid // tiles) * BM, (pid % tiles) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        with bragg.kernel_scope("load", step):
            left = a.load([row, step * BK])
            right = b.load([step * BK, column])
        with bragg.kernel_scope("multiply", row / 4):
            total = tl.dot(left, right, total)
    with bragg.kernel_scope("store", -1):
        c.store([row, column], total.to(tl.float16))


_TILES = {"BM": 128, "BN": 128, "BK": 64}
_DESCRIPTORS = {
    name: f"tensordesc<fp16[{shape}]>" for name, shape in (("a", "128, 64"), ("b", "64, 128"), ("c", "128, 128"))
}
_SIZES = dict.fromkeys(("M", "N", "K"), "i32")
_HALVES = dict.fromkeys(("a", "b", "c"), "*fp16")

KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, Any], dict[str, int]]] = {
    "copy": (copy, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 1024}, {"num_warps": 4}),
    "copy_cluster": (copy, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 1024}, {"num_warps": 4, "num_ctas": 2}),
    "softmax": (softmax, {"x": "*fp16", "y": "*fp16", "columns": "i32"}, {"BLOCK": 1024}, {"num_warps": 4}),
    "matmul": (matmul, _HALVES | _SIZES, _TILES, {"num_warps": 4, "num_stages": 3}),
    "matmul8": (matmul, _HALVES | _SIZES, _TILES, {"num_warps": 8, "num_stages": 3}),
    "matmul_tma": (matmul_tma, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 4, "num_stages": 3}),
    "matmul_tma8": (matmul_tma, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 8, "num_stages": 3}),
    "matmul_scoped": (matmul_scoped, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 4, "num_stages": 3}),
    "matmul_valued": (matmul_valued, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 4, "num_stages": 3}),
    "attention": (
        attention,
        dict.fromkeys(("q", "k", "v", "out"), "*fp16") | {"length": "i32", "scale": "fp32"},
        {"BM": 128, "BN": 64, "D": 64},
        {"num_warps": 4, "num_stages": 3},
    ),
}
"""Kernel, types of its arguments, constants and options, by name."""

LAUNCHED = KERNELS | {
    "matmul_tma_unpipelined": (matmul_tma, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 4, "num_stages": 1}),
    "matmul_scoped8": (matmul_scoped, _DESCRIPTORS | _SIZES, _TILES, {"num_warps": 8, "num_stages": 3}),
    "matmul_scoped_pointers": (matmul_scoped_pointers, _HALVES | _SIZES, _TILES, {"num_warps": 4, "num_stages": 3}),
    "matmul_scoped_pointers8": (matmul_scoped_pointers, _HALVES | _SIZES, _TILES, {"num_warps": 8, "num_stages": 3}),
    "matmul_specialized": (
        matmul_specialized,
        _DESCRIPTORS | {"c": "*fp16"} | _SIZES,
        _TILES,
        {"num_warps": 4, "num_stages": 3},
    ),
}
"""With those that are measured on GPUs alone."""


@cache
def compiled(name: str, capability: int = 90) -> Any:
    """A `CompiledKernel` of Triton."""
    if name.endswith("80"):  # for tests that take a name alone
        name, capability = name.removesuffix("80"), 80
    kernel, types, constants, options = LAUNCHED[name]
    signature = {each: types.get(each, "constexpr") for each in kernel.arg_names}
    aligned = {
        (kernel.arg_names.index(each),): [["tt.divisibility", 16]]
        for each, text in types.items()
        if text[:3] != "ten" and text != "fp32"
    }
    source = ASTSource(kernel, signature, constexprs=constants, attrs=aligned)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def line_of(name: str, text: str) -> int:
    """The line of a kernel that holds a text."""
    lines, first = inspect.getsourcelines(KERNELS[name][0].fn)
    return next(number for number, line in enumerate(lines, first) if text in line)
