from __future__ import annotations

import pytest

from bragg.analyze.causes.other_threads import OtherThreads
from bragg.views.text.bounds_text import threads_text


@pytest.mark.parametrize(
    ("names", "who"),
    [
        ((), "other threads"),
        (("in\x1b[2Jfer",), "thread in\\x1b[2Jfer"),
        (("main", "in\x1b[2Jfer"), "threads main and in\\x1b[2Jfer"),
        (("a\x1b", "b", "c", "d"), "threads a\\x1b, b and 2 more"),
    ],
)
def test_names_of_threads_are_those_that_a_terminal_can_print(names: tuple[str, ...], who: str) -> None:
    text = threads_text(OtherThreads(names, 1.1e9, "/x/ser\x1bve.py:4"))
    assert text == f"{who} ran Python for 1.10 s (most at ser\\x1bve.py:4)"
