"""Memory that nobody has written is known by its pattern, whatever allocated it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.memory.emptiness import has_unwritten, marked_allocations, unwritten, unwritten_memory
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DTYPES

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402


def buffer_of(array: Any, dtype: str = "fp32") -> Buffer:
    return Buffer("x", DTYPES[dtype], array.reshape(-1), array.shape, (1,), array.__array_interface__["data"][0])


def test_elements_are_known_once_they_are_written() -> None:
    with marked_allocations():
        array = np.empty(16, "f4")
    array[4:8] = 1
    found = unwritten(buffer_of(array), np.arange(16))
    assert found.tolist() == [True] * 4 + [False] * 4 + [True] * 8
    array[:] = 0
    assert not has_unwritten(buffer_of(array))


@pytest.mark.parametrize(("dtype", "storage"), [("fp32", "f4"), ("int32", "i4"), ("fp16", "f2"), ("fp64", "f8")])
@pytest.mark.parametrize("count", [1, 7, 16])
def test_one_element_among_written_ones_is_found(dtype: str, storage: str, count: int) -> None:
    with marked_allocations():
        array = np.empty(count, storage)
    array[:-1] = 1
    assert unwritten(buffer_of(array, dtype), np.arange(count)).tolist() == [False] * (count - 1) + [True]


@pytest.mark.parametrize(("dtype", "storage"), [("int16", "i2"), ("uint8", "u1")])
def test_a_small_integer_that_looks_like_the_pattern_is_a_number(dtype: str, storage: str) -> None:
    array = np.arange(32768).astype(storage)
    assert not has_unwritten(buffer_of(array, dtype))


def test_zeros_and_arrays_of_before_are_known() -> None:
    array = np.empty(16, "f4")
    array[:] = np.nan
    with marked_allocations():
        assert not has_unwritten(buffer_of(array))
        assert not has_unwritten(buffer_of(np.zeros(16, "f4")))


@pytest.mark.parametrize(
    "allocate",
    [
        lambda torch: torch.empty(16),
        lambda torch: torch.empty_like(torch.zeros(16)),
        lambda torch: torch.empty_strided((16,), (1,)),
        lambda torch: torch.zeros(2).new_empty(16),
        lambda torch: torch.zeros(2).new_empty_strided((16,), (1,)),
    ],
)
def test_every_way_of_pytorch_is_marked(allocate: Any) -> None:
    torch = pytest.importorskip("torch")
    with marked_allocations():
        tensor = allocate(torch)
    assert has_unwritten(buffer_of(tensor.numpy()))


@triton.jit
def writes_two_slots(cache, stride, last):
    slot = tl.where(tl.program_id(0) == 0, 3, last)
    tl.store(cache + slot * stride + tl.arange(0, 64), tl.zeros((64,), tl.int8))


def test_a_large_empty_tensor_takes_few_bytes_of_shadow_for_each_of_its_own() -> None:
    size_bytes = 4 << 20
    with bragg.debug.check(only=["unwritten"]):
        cache = np.empty((100, size_bytes // 100), "i1")
        tracemalloc.start()
        writes_two_slots[(2,)](cache, cache.shape[1], 90)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak_bytes < 20 * size_bytes


@pytest.mark.parametrize(("dtype", "storage"), [("int8", "u1"), ("int16", "i2"), ("fp32", "f4")])
@pytest.mark.parametrize("skipped", [0, 1, 3])
def test_all_of_the_memory_is_judged_as_its_elements_are(dtype: str, storage: str, skipped: int) -> None:
    with marked_allocations():
        array = np.empty(61, storage)[skipped:]
    array[20:33] = 1
    buffer = buffer_of(array, dtype)
    assert unwritten_memory(buffer).tolist() == unwritten(buffer, np.arange(len(array))).tolist()
