from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.innermost import innermost_changes
from bragg.model.table import Int64Array


def spelled_out(start: Int64Array, end: Int64Array, node: Int64Array) -> list[int]:
    """The node at each of the first moments: that of the slice that began last and has not ended."""
    rows = list(zip(start.tolist(), end.tolist(), node.tolist(), strict=True))
    return [next((n for a, b, n in reversed(rows) if a <= moment < b), -1) for moment in range(60)]


def told(start: Int64Array, end: Int64Array, node: Int64Array) -> list[int]:
    moments, nodes = innermost_changes(start, end, node)
    assert (moments[1:] > moments[:-1]).all()
    return nodes[np.searchsorted(moments, np.arange(60), side="right") - 1].tolist()  # type: ignore[no-any-return]


def nested(rng: np.random.Generator, begin: int, end: int, found: list[tuple[int, int]]) -> None:
    """Slices inside of one another, some with equal ends, some of no length."""
    at = begin
    while at < end:
        stop = int(rng.integers(at, end + 1))
        if rng.random() < 0.7:
            found.append((at, stop))
            if rng.random() < 0.6 and (at, stop) != (begin, end):
                nested(rng, at, stop, found)
        at = max(stop, at + 1)


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_innermost_slice_is_the_one_that_began_last(is_nested: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        rows: list[tuple[int, int]] = []
        if is_nested:
            nested(rng, 0, 50, rows)
        else:
            rows = [(int(a), int(a + rng.integers(1, 20))) for a in rng.choice(40, rng.integers(1, 9), replace=False)]
        rows.sort(key=lambda row: (row[0], -row[1]))
        table = np.array(rows, np.int64).reshape(-1, 2)
        slices = (table[:, 0], table[:, 1], np.arange(len(table)))
        expected = spelled_out(*slices)
        assert told(*slices) == expected


def test_slices_of_any_depth_take_linear_time() -> None:
    depth = 100_000
    start = np.arange(depth)
    moments, nodes = innermost_changes(start, 2 * depth - start, start)
    assert (moments[1], nodes[1], moments[-1], nodes[-1]) == (0, 0, 2 * depth, -1)
