from __future__ import annotations

from bragg.views.text.cutting import cut_apart
from bragg.views.text.style import PLAIN, Style

LONG = "at_native_elementwise_kernel_with_many_arguments_{}_and_a_tail_that_is_the_same_for_all_of_them"


def test_names_with_room_are_whole() -> None:
    assert cut_apart(["a" * 50, "b"], None, PLAIN) == ["a" * 50, "b"]
    assert cut_apart(["short", "b"], 20, PLAIN) == ["short", "b"]


def test_names_that_differ_only_in_what_is_cut_are_told_apart() -> None:
    names = [LONG.format(kind) for kind in ("float", "bfloat16", "half")]
    cut = cut_apart(names, 40, PLAIN)
    assert len(set(cut)) == 3
    assert all(len(text) <= 40 and "…" in text for text in cut)
    for kind, text in zip(("float", "bfloat16", "half"), cut, strict=True):
        assert kind in text


def test_equal_names_stay_equal_and_others_are_cut_in_the_middle() -> None:
    first, second, other = LONG.format("a"), LONG.format("b"), "x" * 30 + "y" * 30
    cut = cut_apart([first, first, second, other], 40, Style(unicode=False))
    assert cut[0] == cut[1] != cut[2]
    assert cut[3].startswith("x")
    assert cut[3].endswith("y")
