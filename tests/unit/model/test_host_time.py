from __future__ import annotations

from textwrap import dedent

import numpy as np

from bragg.model.host_time import own_host_time
from tests.support.profiles import profile_from_text


def inclusive(text: str, measured: dict[str, int], sampled: dict[str, int]) -> dict[str, int]:
    tree = profile_from_text(dedent(text)).tree
    labels = [tree.label(node) for node in range(len(tree))]
    column = {
        name: np.array([values.get(label, 0) for label in labels])
        for name, values in {"measured": measured, "sampled": sampled}.items()
    }
    is_measured = np.array([label in measured for label in labels])
    own = own_host_time(tree, column["measured"], is_measured, column["sampled"])
    return dict(zip(labels, tree.sum_up(own).tolist(), strict=True))


def test_a_measured_scope_has_its_measured_time_whatever_was_sampled_inside() -> None:
    assert inclusive("root\n  scope\n    a.py:1@f", {"scope": 10}, {"a.py:1@f": 4}) == {
        "root": 10,
        "scope": 10,
        "a.py:1@f": 4,
    }


def test_a_scope_whose_children_exceed_it_has_their_time() -> None:
    assert inclusive("root\n  scope\n    a.py:1@f", {"scope": 3}, {"a.py:1@f": 4})["scope"] == 4


def test_samples_at_a_line_that_calls_an_operator_are_the_operators() -> None:
    text = "root\n  a.py:1@f\n    aten::mm #operator"
    assert inclusive(text, {"aten::mm": 8}, {"a.py:1@f": 6})["a.py:1@f"] == 8
    assert inclusive(text, {"aten::mm": 8}, {"a.py:1@f": 11})["a.py:1@f"] == 11


def test_samples_in_called_functions_add_up() -> None:
    text = "root\n  a.py:1@f\n    b.py:2@g"
    assert inclusive(text, {}, {"a.py:1@f": 6, "b.py:2@g": 5})["root"] == 11


def test_a_state_that_was_measured_elsewhere_is_no_part_of_the_operator_above_it() -> None:
    text = "root\n  a.py:1@f\n    aten::mm #operator\n      [backward] #state\n        aten::t #operator"
    times = inclusive(text, {"aten::mm": 8, "[backward]": 20, "aten::t": 5}, {"a.py:1@f": 6})
    assert times == {"root": 28, "a.py:1@f": 28, "aten::mm": 28, "[backward]": 20, "aten::t": 5}
    assert inclusive(text, {"aten::mm": 8, "[backward]": 20, "aten::t": 5}, {"a.py:1@f": 9})["a.py:1@f"] == 29
