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
    from typing import Any

__all__ = ["LATE", "TOLD", "library_of", "record_operators", "record_shaped_operators", "refusal_of_observers"]

TOLD = "torch_operators"
"""What the profile's meta calls the way that operators came: `observers`, or `itt` and why."""

LATE = "PyTorch was imported before the recording started, so its operators are missing; use `bragg run`"
"""What is true of operators that come as ITT tasks."""


def record_operators(torch: ModuleType) -> Callable[[], None] | None:
    """Record the operators of all threads.

    Returns:
        What undoes it; None when this PyTorch lets none be recorded.
    """
    return _record(torch, shapes=False)


def record_shaped_operators(torch: ModuleType) -> Callable[[], None] | None:
    """As `record_operators`, with shapes and types of their tensors in their names, and who made these tensors."""
    return _record(torch, shapes=True)


def _record(torch: ModuleType, *, shapes: bool) -> Callable[[], None] | None:
    if os.environ.get(variables.OPERATORS) == "itt":
        refusal = f"{variables.OPERATORS}=itt"
    else:
        refusal = refusal_of_observers(torch)
        if not refusal:
            if shapes and not _tells_tensors(torch):
                note(f"PyTorch {torch.__version__} keeps tensors otherwise: who made inputs is not recorded")
            if not core.observe_operators(shapes):
                note(f"PyTorch {torch.__version__} does not tell the shapes of tensors: operators are recorded without")
            metadata.tell(TOLD, "observers")
            return core.stop_observing_operators
        note(f"PyTorch {torch.__version__}: {refusal}; its operators are recorded through ITT, which takes longer")
    if shapes:
        note("shapes of tensors are not recorded: ITT does not tell them")
    metadata.tell(TOLD, f"itt ({refusal})")
    return emit_operators(torch)


def _tells_tensors(torch: ModuleType) -> bool:
    """Whether an operator told its tensors where the core can read them, which it has learned then."""
    one, other = (torch.zeros(1, device="cpu") for _ in range(2))
    core.begin_input_trial(_addresses(one), _addresses(other))
    result = one
    try:
        result = torch.cat([one, other])
    finally:
        is_learned = core.end_input_trial(_addresses(result))
    return is_learned


def _addresses(tensor: Any) -> tuple[int, int, int]:
    """Of a tensor, of its storage and of its data."""
    storage = tensor.untyped_storage()
    return tensor._cdata, storage._cdata, storage.data_ptr()


def library_of(torch: ModuleType) -> str:
    """Path of the library that has the operators and the engine of autograd."""
    return os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libtorch_cpu.so")


def refusal_of_observers(torch: ModuleType) -> str:
    """What keeps observers from being used; empty when one operator was observed as expected."""
    refusal = core.begin_operator_trial(library_of(torch))
    if refusal:
        return refusal
    try:
        torch.empty(0, device="cpu")
    finally:
        refusal = core.end_operator_trial("aten::empty")
    return refusal
