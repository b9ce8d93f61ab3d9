"""PyTorch: its operators, through observers of its library, else as ITT tasks."""
# ruff: noqa: PTH118, PTH120
# `pathlib` would add 10 ms to the start of every recorded process.

from __future__ import annotations

import os

from bragg.core import core
from bragg.record import variables
from bragg.record.hooks.torch.itt_operators import emit_operators
from bragg.record.hooks.torch.operator_cost import tell_cost_of_observers
from bragg.record.inside import metadata
from bragg.record.inside.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


TOLD = "torch_operators"
"""Key of the profile's meta for the source of operators: `observers`, or `itt` and why."""

LATE = "PyTorch was imported before the recording started, so its operators are missing. Use `bragg run`"
"""Note for operators that come as ITT tasks."""


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
    # Observers that are on have gone through their trial; one more would be in what they record.
    refusal = "" if _OBSERVERS.are_on else _refusal(torch)
    if not refusal:
        metadata.tell(TOLD, "observers")
        if not _OBSERVERS.are_on:
            tell_cost_of_observers(torch, library_of(torch))
        return _OBSERVERS.begin(torch, shapes)
    if shapes:
        note("shapes of tensors are not recorded: ITT does not tell them")
    metadata.tell(TOLD, f"itt ({refusal})")
    return emit_operators(torch)


def _refusal(torch: ModuleType) -> str:
    if os.environ.get(variables.OPERATORS) == "itt":
        return f"{variables.OPERATORS}=itt"
    refusal = refusal_of_observers(torch)
    if refusal:
        note(f"PyTorch {torch.__version__}: {refusal}; its operators are recorded through ITT, which takes longer")
    return refusal


class _Observers:
    """The core's observers, which are one for all recordings: with shapes while one of these wants them."""

    def __init__(self) -> None:
        self._wants: list[bool] = []

    @property
    def are_on(self) -> bool:
        return bool(self._wants)

    def begin(self, torch: ModuleType, shapes: bool) -> Callable[[], None]:
        """Observe for one more recording; what ends it is returned."""
        self._change(torch, [*self._wants, shapes])

        def end() -> None:
            without = list(self._wants)
            without.remove(shapes)
            self._change(torch, without)

        return end

    def _change(self, torch: ModuleType, wants: list[bool]) -> None:
        before, self._wants = self._wants, wants
        shapes = any(wants)
        if before and wants and shapes == any(before):
            return
        if before:
            core.stop_observing_operators()
        if not wants:
            return
        if shapes and not _tells_tensors(torch):
            note(f"PyTorch {torch.__version__} has unknown tensors: the producers of inputs are not recorded")
        if not core.observe_operators(shapes):
            note(f"PyTorch {torch.__version__} does not tell the shapes of tensors: operators are recorded without")


_OBSERVERS = _Observers()


def _tells_tensors(torch: ModuleType) -> bool:
    """Whether the core has learned where an operator passes its tensors, by observing one."""
    one, other = (torch.zeros(1, device="cpu") for _ in range(2))
    core.begin_input_trial(_addresses(one), _addresses(other))
    result = one
    try:
        result = torch.cat([one, other])
    finally:
        is_learned = core.end_input_trial(_addresses(result))
    return is_learned


def _addresses(tensor: Any) -> tuple[int, int, int]:
    """Addresses of a tensor, of its storage and of its data."""
    storage = tensor.untyped_storage()
    return tensor._cdata, storage._cdata, storage.data_ptr()


def library_of(torch: ModuleType) -> str:
    """Path of the library that has the operators and the engine of autograd."""
    return os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libtorch_cpu.so")


def refusal_of_observers(torch: ModuleType) -> str:
    """Why observers cannot be used; empty if one operator was observed as expected."""
    refusal = core.begin_operator_trial(library_of(torch))
    if refusal:
        return refusal
    try:
        torch.empty(0, device="cpu")
    finally:
        refusal = core.end_operator_trial("aten::empty")
    return refusal
