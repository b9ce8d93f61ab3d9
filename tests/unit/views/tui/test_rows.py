from __future__ import annotations

import pytest

from bragg.views.terminal.tree_view import tree_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.tui.rows import TreeRows
from tests.support.profiles import profile_from_text

TEXT = """root
  train.py:3@step
    matmul 30us x1
    gelu 10us x9
    <b>[red]odd 5us
  idle"""


def rows() -> TreeRows:
    return TreeRows(tree_view(profile_from_text(TEXT), ViewOptions()))


def names(shown: TreeRows, node: int) -> list[str]:
    return [shown.name(child) for child in shown.children(node)]


def test_children_are_ordered_by_each_column_and_the_name_in_turn() -> None:
    shown = rows()
    orders = []
    for _ in range(4):
        orders.append((shown.sort_name, names(shown, 1)))
        shown.next_sort()
    assert orders == [
        ("gpu_time", ["matmul", "gelu", "<b>[red]odd"]),
        ("gpu_count", ["gelu", "matmul", "<b>[red]odd"]),
        ("name", ["<b>[red]odd", "gelu", "matmul"]),
        ("gpu_time", ["matmul", "gelu", "<b>[red]odd"]),
    ]


def test_nodes_without_a_value_are_left_out() -> None:
    shown = rows()
    assert names(shown, 0) == ["step"]
    assert [shown.has_children(node) for node in (0, 1, 2)] == [True, True, False]


def test_rows_say_their_values_with_units_and_their_share() -> None:
    shown = rows()
    assert shown.numbers(shown.children(1)[0]).split() == ["30.00", "us", "66.7", "%", "████", "1"]
    assert rows().place(1) == ("train.py", 3)


def test_matches_are_text_or_expressions_in_the_order_of_the_rows() -> None:
    shown = rows()
    assert [shown.name(node) for node in shown.matches("L")] == ["total", "matmul", "gelu"]
    assert [shown.name(node) for node in shown.matches("/^(gelu|odd)$/")] == ["gelu"]
    assert shown.matches("train.py:3") == [1]
    with pytest.raises(ValueError, match=r"/\(\(/ is not an expression"):
        shown.matches("/((/")
