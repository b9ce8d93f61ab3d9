# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Addresses that a program has taken, and the tensors that are gone."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import bragg.debug
from bragg.garbage import no_collection

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

SIZE = 1 << 10


@triton.jit
def sums(table, out, B: tl.constexpr):
    row = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0), tl.sum(tl.load(row + tl.arange(0, B)), 0))


def moved_into(memory: np.ndarray, value: float) -> torch.Tensor:
    """A tensor at a given place, as an allocator gives one where another was freed."""
    tensor = torch.from_numpy(memory)
    tensor.fill_(value)
    return tensor


def rules(report: object) -> list[str]:
    return [finding.rule for finding in report]  # type: ignore[attr-defined]


def test_rows_that_are_alive_are_clean() -> None:
    out = np.zeros(3, "f4")
    with bragg.debug.check() as report:
        rows = [torch.full((SIZE,), float(k)) for k in range(3)]
        sums[(3,)](np.array([row.data_ptr() for row in rows]), out, B=64)
    assert rules(report) == []
    assert out.tolist() == [0, 64, 128]


def test_an_address_of_memory_that_another_tensor_got_is_reported() -> None:
    memory = np.zeros(SIZE, "f4")
    with bragg.debug.check() as report:
        old = moved_into(memory, 1)
        table = np.array([old.data_ptr()])
        del old
        new = moved_into(memory, 2)
        sums[(1,)](table, np.zeros(1, "f4"), B=64)
    assert rules(report) == ["stale-memory"]
    (finding,) = report
    assert "belongs to another tensor by now: a tensor (float32[1024])" in finding.message
    assert finding.other is not None
    assert finding.other["code"] == "table = np.array([old.data_ptr()])"
    assert new.sum() == 2 * SIZE


def test_an_address_that_was_taken_anew_is_clean() -> None:
    memory = np.zeros(SIZE, "f4")
    with bragg.debug.check() as report:
        old = moved_into(memory, 1)
        assert old.data_ptr()
        del old
        new = moved_into(memory, 2)
        sums[(1,)](np.array([new.data_ptr()]), np.zeros(1, "f4"), B=64)
    assert rules(report) == []


def test_an_array_of_numpy_where_a_tensor_was_is_clean() -> None:
    memory = np.full(SIZE, 2, "f4")
    with bragg.debug.check() as report:
        old = moved_into(memory, 1)
        assert old.data_ptr()
        del old
        sums[(1,)](np.array([memory.ctypes.data]), np.zeros(1, "f4"), B=64)
    assert rules(report) == []


def test_addresses_of_an_earlier_check_are_forgotten() -> None:
    memory = np.zeros(SIZE, "f4")
    with bragg.debug.check():
        old = moved_into(memory, 1)
        assert old.data_ptr()
        del old
    rows = memory.reshape(2, -1)
    with bragg.debug.check() as report:  # NumPy says nothing of whom it gives addresses to
        sums[(2,)](np.array([row.ctypes.data for row in rows]), np.zeros(2, "f4"), B=64)
    assert rules(report) == []


def test_freed_memory_is_out_of_bounds_where_nobody_looks_for_it() -> None:
    from tests.kernels.planted.lifetimes import sums_rows_of_a_table, table_with_a_freed_row

    with bragg.debug.check(without=["stale-memory"]) as report:
        sums_rows_of_a_table[(3,)](table_with_a_freed_row(), np.zeros(3, "f4"), B=64)
    assert rules(report) == ["out-of-bounds"]
    assert report.findings[0].message == "load outside of all tensors"
    assert "address 0x" in report.findings[0].example


def test_methods_of_pytorch_are_its_own_after_a_check() -> None:
    before = torch.Tensor.data_ptr, torch.UntypedStorage.data_ptr
    with bragg.debug.check():
        pass
    assert (torch.Tensor.data_ptr, torch.UntypedStorage.data_ptr) == before


@triton.jit
def doubled(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2)


def test_tensors_of_a_launch_are_freed_as_soon_as_the_program_drops_them() -> None:
    with bragg.debug.check(), no_collection():
        x, out = np.ones(64, "f4"), np.zeros(64, "f4")
        kept = [weakref.ref(x), weakref.ref(out)]
        doubled[(2,)](x, out, B=32)
        assert out.sum() == 128
        del x, out
        assert [one() for one in kept] == [None, None]
