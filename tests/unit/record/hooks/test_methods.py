"""Methods that several recordings wrap, which end in any order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.methods import wrap, wrap_engine


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


def test_wrappers_of_the_engine_end_in_any_order() -> None:
    engine_class = type("Engine", (), {"run_backward": lambda _, word: word})
    engine = engine_class()
    torch: Any = SimpleNamespace(autograd=SimpleNamespace(Variable=SimpleNamespace(_execution_engine=engine)))
    undo_first, undo_second = (
        wrap_engine(torch, lambda run, word=word: lambda said: run(said + word), "") for word in "ab"
    )
    assert undo_first is not None
    assert undo_second is not None
    assert torch.autograd.Variable._execution_engine.run_backward("") == "ba"
    undo_first()
    assert isinstance(torch.autograd.Variable._execution_engine, engine_class)
    assert torch.autograd.Variable._execution_engine.run_backward("") == "b"
    undo_second()
    assert torch.autograd.Variable._execution_engine is engine


def test_what_somebody_else_has_put_there_stays(kind: Any) -> None:
    undo = wrap(kind, "say", saying("a"))
    kind.say = others = saying("other")(kind.say)
    undo_later = wrap(kind, "say", saying("b"))
    undo()
    undo_later()
    assert kind.say is others
    assert kind().say() == "other a original"
