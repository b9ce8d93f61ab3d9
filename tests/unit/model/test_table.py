from __future__ import annotations

import numpy as np
import pytest

from bragg.model import FlowTable, FrameTable


def frames(*names: str) -> FrameTable:
    n = len(names)
    return FrameTable(np.arange(n), list(names), [""] * n, np.zeros(n), np.full(n, -1))


def test_columns_are_converted_to_their_types() -> None:
    table = FlowTable(source=np.array([1, 2], np.uint8), target=np.array([3, 4]))
    assert table.source.dtype == np.int64
    assert len(table) == 2


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"FlowTable: columns differ in length: \{'source': 1, 'target': 2\}"):
        FlowTable(source=np.array([1]), target=np.array([3, 4]))


def test_take_accepts_indices_and_masks() -> None:
    table = frames("a", "b", "c")
    assert table.take(np.array([2, 0])).name == ["c", "a"]
    assert table.take(np.array([False, True, True])).kind.tolist() == [1, 2]


def test_concatenate_keeps_the_order_of_rows() -> None:
    joined = FrameTable.concatenate([frames("a", "b"), frames("c")])
    assert joined.name == ["a", "b", "c"]
    assert joined.kind.tolist() == [0, 1, 0]
    assert len(FrameTable.concatenate([])) == 0


def test_replace_changes_one_column() -> None:
    assert frames("a").replace(name=["b"]).name == ["b"]
