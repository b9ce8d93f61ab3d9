# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Bank conflicts, which need the kernel as Triton compiles it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.host import compiler

gluon = pytest.importorskip("triton.experimental.gluon")
gl = pytest.importorskip("triton.experimental.gluon.language")


class Parts(NamedTuple):
    """Where rows go, and what is done to them."""

    out: Any
    scales: tuple[float, int]


@triton.jit
def rows_by_descriptor(source, parts, B: tl.constexpr):
    rows = source.load([0, 0]) * parts.scales[0] + parts.scales[1]
    tl.store(parts.out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], rows)


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_kernels_with_descriptors_and_tuples_are_compiled_for_their_bank_conflicts() -> None:
    torch = pytest.importorskip("torch")
    descriptor = pytest.importorskip("triton.tools.tensor_descriptor").TensorDescriptor
    source, out = torch.ones(16, 16), torch.zeros(16, 16)
    with bragg.debug.check(only=["bank-conflict"]) as report:
        rows_by_descriptor[(1,)](descriptor.from_tensor(source, [16, 16]), Parts(out, (2.0, 1)), 16)
    assert not len(report), report.lines()
    assert (out == 3).all()


@gluon.jit
def turned_in_shared_memory(source, out, N: gl.constexpr):
    along_rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[1, 0])
    row, column = gl.arange(0, N, gl.SliceLayout(1, along_rows)), gl.arange(0, N, gl.SliceLayout(0, along_rows))
    places = row[:, None] * N + column[None, :]
    held = gl.allocate_shared_memory(gl.float32, [N, N], plain)
    held.store(gl.load(source + places))
    gl.thread_barrier()
    gl.store(out + places, held.permute([1, 0]).load(along_rows))


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_gluon_kernels_are_compiled_as_such() -> None:
    source, out = np.arange(1024, dtype="f4").reshape(32, 32), np.zeros((32, 32), "f4")
    with bragg.debug.check(only=["bank-conflict"]) as report:
        turned_in_shared_memory[(1,)](source, out, 32)
    assert (out == source.T).all()
    (finding,) = report
    assert finding.message.startswith("bank conflict: 32 lanes of a warp read one bank of shared memory")
    assert finding.code == "gl.store(out + places, held.permute([1, 0]).load(along_rows))"


@triton.jit
def product_of_rows(a, b, out, K, N: tl.constexpr):
    rows, columns, ks = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 32)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 32):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_operands_of_a_product_are_to_be_kept_along_what_it_sums_over() -> None:
    a, b, out = np.ones((64, 64), "f4"), np.ones((64, 64), "f4"), np.zeros((64, 64), "f4")
    with bragg.debug.check(only=["bank-conflict"]) as report:
        product_of_rows[(1,)](a, b, out, 64, N=64)
    (finding,) = report
    assert finding.code.startswith("right = tl.load")
    assert finding.hint.startswith("Keep the tensor so that the dimension that the product sums over is contiguous")


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_a_kernel_is_compiled_once_and_no_further_than_to_where_its_conflicts_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    lowered = []
    first = compiler._lower
    monkeypatch.setattr(compiler, "_lower", lambda *given: (lowered.append(given), first(*given))[1])
    a, b, out = np.ones((64, 32), "f4"), np.ones((32, 128), "f4"), np.zeros((64, 128), "f4")
    with bragg.debug.check(only=["bank-conflict"]) as report:
        for _ in range(2):
            product_of_rows[(1,)](a, b, out, 32, N=128)
    assert (len(lowered), report.launches) == (1, 2)
    assert not list(tmp_path.rglob("*.cubin"))
