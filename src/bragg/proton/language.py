"""Marks inside kernels: they compile to nothing unless a session measures inside kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from triton.language import core as tl

from bragg.proton.flags import flags
from bragg.proton.upstream import NUMBERED_REGIONS

__all__ = [
    "Event",
    "allocate_event",
    "disable_semantic",
    "enable_semantic",
    "end_event",
    "enter_scope",
    "exit_scope",
    "record",
    "record_event",
    "scope",
    "start_event",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

builtin: Callable[[_Function], _Function] = tl.builtin
_KNOWN = ("triton", "gluon")
_enabled = {"gluon"}


def enable_semantic(semantic_name: str) -> None:
    """Let kernels of a language be measured.

    Args:
        semantic_name: `triton`, `gluon`.

    Raises:
        KeyError: There is no such language.
    """
    if semantic_name not in _KNOWN:
        raise KeyError(semantic_name)
    _enabled.add(semantic_name)


def disable_semantic(semantic_name: str) -> None:
    """Let kernels of a language be measured no more.

    Raises:
        KeyError: They were not.
    """
    _enabled.remove(semantic_name)


def record(is_start: Any, scope_name: Any, semantic: Any = None, _semantic: Any = None) -> None:
    """Mark a place of a kernel."""


if NUMBERED_REGIONS:
    record = builtin(record)


@builtin
def enter_scope(name: Any, _semantic: Any = None) -> None:
    """Begin a region of a kernel."""
    _mark(True, name, _semantic)


@builtin
def exit_scope(name: Any, _semantic: Any = None) -> None:
    """End a region of a kernel."""
    _mark(False, name, _semantic)


def _mark(is_start: bool, name: Any, semantic: Any) -> None:
    """Put a record into the kernel that is being compiled, if it is to have some.

    Raises:
        TypeError: Kernels of its language are not measured.
    """
    if not flags.instrumentation_on:
        return
    from triton._C.libtriton import proton

    language = "gluon" if "gluon" in type(semantic).__module__ else "triton"
    if language not in _enabled:
        raise TypeError(f"Unsupported semantic type: {type(semantic)}. Supported semantics are: {sorted(_enabled)}")
    proton.create_proton_record(semantic.builder, is_start, tl._unwrap_if_constexpr(name))


class scope:  # noqa: N801 (Proton's name)
    """A region of a kernel, as a `with` block.

    Args:
        name: Of the region.
        _semantic: What Triton's compiler passes on.
    """

    def __init__(self, name: str, _semantic: Any = None) -> None:
        self.name = name
        self.semantic = _semantic

    def __enter__(self) -> None:
        enter_scope(self.name, _semantic=self.semantic)

    def __exit__(self, *raised: object) -> None:
        exit_scope(self.name, _semantic=self.semantic)


class _EventType(tl.base_type):  # type: ignore[misc]
    """Type of events, which have no value in a kernel."""

    def _unflatten_ir(self, handles: Any, cursor: int) -> tuple[Event, int]:
        return Event(), cursor

    def _flatten_ir_types(self, builder: Any, out: Any) -> None:
        """Add no type."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _EventType)

    def __hash__(self) -> int:
        return hash(_EventType)

    def mangle(self) -> str:
        """Part of the names of functions that take one."""
        return "PEvent"

    def __str__(self) -> str:
        return "proton.event"


class Event(tl.base_value):  # type: ignore[misc]
    """Something that begins in one place of a kernel and ends in another."""

    def __init__(self, handle: Any = None) -> None:
        self.handle = handle
        self.type = _EventType()

    def _flatten_ir(self, handles: Any) -> None:
        """Add no value."""

    def _set_name(self, builder: Any, name: str) -> None:
        """Have no name."""


@builtin
def allocate_event(name: Any, _semantic: Any = None) -> Event:
    """A new event."""
    return Event()


def record_event(event: Event, is_start: Any, _semantic: Any = None) -> None:
    """Mark the begin or the end of an event."""


@builtin
def start_event(event: Event, _semantic: Any = None) -> None:
    """Begin an event."""


@builtin
def end_event(event: Event, _semantic: Any = None) -> None:
    """End an event."""
