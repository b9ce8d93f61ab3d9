"""PyTorch: its operators, through observers of its library, else as ITT tasks."""
# ruff: noqa: PTH118, PTH120
# `pathlib` would add 10 ms to the start of every recorded process.

from __future__ import annotations

import os

from bragg.record import metadata, variables
from bragg.record.core import core
from bragg.record.hooks.torch import emit_operators
from bragg.record.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["library_of", "record_operators", "record_shaped_operators"]

OBSERVERS, ITT = "observers", "itt"


def record_operators(torch: ModuleType) -> Callable[[], None] | None:
    """Record the operators of all threads; how they come is told in the profile's meta as `torch_operators`.

    Returns:
        What undoes it; None when this PyTorch lets none be recorded.
    """
    return _record(torch, shapes=False)


def record_shaped_operators(torch: ModuleType) -> Callable[[], None] | None:
    """As `record_operators`, with shapes and types of their tensors in their names."""
    return _record(torch, shapes=True)


def _record(torch: ModuleType, *, shapes: bool) -> Callable[[], None] | None:
    if os.environ.get(variables.OPERATORS) == ITT:
        refusal = f"{variables.OPERATORS}={ITT}"
    else:
        refusal = _try_observers(torch)
        if not refusal:
            if not core.observe_operators(shapes):
                note(f"PyTorch {torch.__version__} does not tell the shapes of tensors: operators are recorded without")
            metadata.tell("torch_operators", OBSERVERS)
            return core.stop_observing_operators
        note(f"PyTorch {torch.__version__}: {refusal}; its operators are recorded through ITT, which takes longer")
    if shapes:
        note("shapes of tensors are not recorded: ITT does not tell them")
    metadata.tell("torch_operators", f"{ITT} ({refusal})")
    return emit_operators(torch)


def library_of(torch: ModuleType) -> str:
    """Path of the library that has the operators and the engine of autograd."""
    return os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libtorch_cpu.so")


def _try_observers(torch: ModuleType) -> str:
    """What keeps observers from being used; empty when one operator was observed as expected."""
    refusal = core.begin_operator_trial(library_of(torch))
    if refusal:
        return refusal
    try:
        torch.empty(0, device="cpu")
    finally:
        refusal = core.end_operator_trial("aten::empty")
    return refusal
