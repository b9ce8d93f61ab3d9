"""Integer blocks in closed form."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bragg.debug.numbers.affine import Affine

AXES = st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 8)), min_size=1, max_size=3)


def block(*axes: tuple[int, int]) -> Affine:
    """Of strides and extents."""
    strides, shape = zip(*axes, strict=True)
    return Affine(np.array([7]), strides, shape)


@given(AXES)
def test_elements_of_a_block_that_does_not_meet_differ(axes: list[tuple[int, int]]) -> None:
    found = block(*axes)
    values = found.array(np.dtype(np.int64))
    assert found.meets() or len(np.unique(values)) == values.size


def test_a_block_meets_whose_rows_are_longer_than_their_stride() -> None:
    assert not block((16, 8), (1, 16)).meets()
    assert not block((1, 16), (-16, 8)).meets()
    assert block((12, 8), (1, 16)).meets()
    assert block((0, 8), (1, 16)).meets()
    assert not block((0, 1), (1, 16)).meets()
