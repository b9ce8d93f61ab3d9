from __future__ import annotations

import numpy as np

from bragg.views.terminal.outline import OutlineRow, outline
from tests.support.profiles import profile_from_text

TEXT = "root\n  a\n    b 5us\n    c 1us\n  d 4us\n  e 2us"


def rows(row: OutlineRow) -> list[tuple[int, ...]]:
    return [row.nodes, *(nodes for child in row.children for nodes in rows(child))]


def chosen(max_lines: int | None = None, **options: object) -> list[tuple[int, ...]]:
    profile = profile_from_text(TEXT)
    weight = profile.inclusive("gpu_time").astype(float)
    foldable = np.zeros(len(weight), np.bool_)
    return rows(outline(profile.tree, weight, foldable=foldable, max_lines=max_lines, **options).root)


def test_all_rows_are_shown_without_limits() -> None:
    assert chosen() == [(0,), (1,), (2,), (3,), (4,), (5,)]


def test_hottest_rows_are_chosen_first_wherever_they_are() -> None:
    assert chosen(max_lines=4) == [(0,), (1,)]


def test_a_row_stands_in_place_of_the_line_that_counts_it_alone() -> None:
    assert chosen(max_lines=5) == [(0,), (1,), (2,), (3,)]


def test_line_that_counts_is_saved_when_the_last_row_is_shown() -> None:
    profile = profile_from_text("root\n  a 2us\n  b 1us")
    weight = profile.inclusive("gpu_time").astype(float)
    none = np.zeros(3, np.bool_)
    assert len(rows(outline(profile.tree, weight, foldable=none, max_lines=3).root)) == 3


def test_light_rows_are_left_out() -> None:
    assert chosen(least=3_000) == [(0,), (1,), (2,), (4,)]


def test_siblings_are_in_the_order_that_is_asked_for() -> None:
    assert chosen(order=lambda node: -node)[1] == (5,)


def test_hidden_nodes_are_counted_once() -> None:
    profile = profile_from_text(TEXT)
    weight = profile.inclusive("gpu_time").astype(float)
    result = outline(profile.tree, weight, foldable=np.zeros(6, np.bool_), max_depth=1)
    assert (result.n_hidden, result.hidden_tops.tolist()) == (2, [2, 3])
