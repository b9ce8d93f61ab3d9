"""Memory that nobody has written is known by its pattern, whatever allocated it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bragg.debug.memory.emptiness import has_unwritten, marked_allocations, unwritten
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DTYPES


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
