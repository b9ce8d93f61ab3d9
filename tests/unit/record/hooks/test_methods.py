"""Methods that several recordings wrap, which end in any order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from bragg.record.hooks.methods import wrap


def saying(word: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    def wrapper(call: Callable[..., str]) -> Callable[..., str]:
        return lambda self: f"{word} {call(self)}"

    return wrapper


@pytest.fixture
def kind() -> Any:
    return type("Kind", (), {"say": lambda _: "original"})


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_wrappers_end_in_any_order(kind: Any, order: tuple[str, ...]) -> None:
    original = kind.say
    undo = {word: wrap(kind, "say", saying(word)) for word in "abc"}
    left = ["c", "b", "a"]
    assert kind().say() == "c b a original"
    for word in order:
        undo[word]()
        left.remove(word)
        assert kind().say() == " ".join([*left, "original"])
    assert kind.say is original


def test_what_somebody_else_has_put_there_stays(kind: Any) -> None:
    undo = wrap(kind, "say", saying("a"))
    kind.say = others = saying("other")(kind.say)
    undo_later = wrap(kind, "say", saying("b"))
    undo()
    undo_later()
    assert kind.say is others
    assert kind().say() == "other a original"
