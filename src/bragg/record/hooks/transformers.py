"""Transformers: each turn of the loops of `generate` is a decoding step, without a word of the program."""

from __future__ import annotations

from bragg.record.hooks.methods import wrap
from bragg.record.inside.notes import note
from bragg.record.inside.regions import REGIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook
    from bragg.record.hooks.methods import Undo


# Every loop calls it once a turn, greedy search, sampling, beams and assistants alike.
_END_OF_TURN = "_update_model_kwargs_for_generation"


def record_decoding_steps(generation: ModuleType) -> Undo | None:
    """Tell where turns end: from one end to the next is a step.

    Returns:
        What undoes it; None when this version of Transformers generates otherwise.
    """
    mixin = getattr(generation, "GenerationMixin", None)
    if not hasattr(mixin, _END_OF_TURN):
        note("this version of Transformers generates in an unknown way: its decoding steps are not counted")
        return None

    def ending(end_turn: Callable[..., Any]) -> Callable[..., Any]:
        def end_turn_and_step(*arguments: Any, **options: Any) -> Any:
            result = end_turn(*arguments, **options)
            REGIONS.end_decoding_step()
            return result

        return end_turn_and_step

    REGIONS.begin_decoding()
    return wrap(mixin, _END_OF_TURN, ending)


DECODING_HOOK: Hook = ("transformers.generation.utils", record_decoding_steps)
"""The module of Transformers, and the function that patches it."""
