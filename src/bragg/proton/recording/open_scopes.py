"""The scopes and the state that each thread has open."""

from __future__ import annotations

import itertools
import threading
import warnings
from typing import NamedTuple

from bragg.core import core
from bragg.proton.errors import UnbalancedScope
from bragg.proton.flags import flags

__all__ = [
    "OpenScope",
    "close_all",
    "depth",
    "enter",
    "is_on",
    "last_entered",
    "leave",
    "next_id",
    "opened_by",
    "path",
    "replace_state",
    "was_closed",
]

# Ids are consecutive over all threads; taking one is atomic.
next_id = itertools.count().__next__
_is_recording = core.recording
_new = tuple.__new__


class OpenScope(NamedTuple):
    """A scope that was entered and not left.

    Attributes:
        id: Unlike that of any other scope.
        name: As the program gave it.
        owner: The context manager that will leave it; None when `exit_scope` will.
        is_in_path: Whether anything recorded when it was entered; a scope of a pause is in no call path.
    """

    id: int
    name: str
    owner: object
    is_in_path: bool


class _Thread:
    """What is open on one thread.

    Attributes:
        scopes: Outermost first.
        state: Name of the state, which is always the innermost frame; None when there is none.
    """

    __slots__ = ("scopes", "state")

    def __init__(self) -> None:
        self.scopes: list[OpenScope] = []
        self.state: str | None = None


class _Threads(threading.local):
    def __init__(self) -> None:
        self.current = _Thread()


_threads = _Threads()
_closed_before = 0  # Scopes with smaller ids ended with the last session.


def is_on() -> bool:
    """Whether scopes count: a session was started, or the whole program is recorded."""
    return flags.profiling_on or _is_recording()


def enter(name: str, owner: object = None, scope_id: int | None = None) -> OpenScope:
    """Open a scope on this thread.

    Args:
        name: Shown in call paths.
        owner: The context manager that will leave it.
        scope_id: Its id, if it has one already.

    Raises:
        TypeError: The name is not a string.
    """
    thread = _threads.current
    scopes = thread.scopes
    if scopes and scopes[0][0] < _closed_before:
        _drop_closed(thread)
    is_in_path = _is_recording()
    if is_in_path:
        if thread.state is None:
            core.enter_scope(name)
        else:
            core.exit_state()
            core.enter_scope(name)
            core.enter_state(thread.state)
    # A third of what the class's own constructor costs.
    scope = _new(OpenScope, (next_id() if scope_id is None else scope_id, name, owner, is_in_path))
    scopes.append(scope)
    return scope


def opened_by(owner: object) -> OpenScope | None:
    """The innermost scope that a context manager has open on this thread."""
    for scope in reversed(_current().scopes):
        if scope[2] is owner:
            return scope
    return None


def last_entered(scope_id: int | None = None) -> OpenScope:
    """The innermost scope of this thread, which no `with` block will close.

    Args:
        scope_id: Of the scope that it should be; None: any.

    Raises:
        UnbalancedScope: It is another one, or there is none.
    """
    scopes = _current().scopes
    if not scopes:
        raise UnbalancedScope("Context stack is empty: no scope is open on this thread")
    last = scopes[-1]
    if last.owner is not None or scope_id not in (None, last.id):
        raise UnbalancedScope(f"Context stack is not balanced: scope {last.name!r} is open inside the one that ends")
    return last


def path() -> tuple[str, ...]:
    """Names of the scopes and the state that this thread has open, outermost first."""
    thread = _current()
    return (*(scope[1] for scope in thread.scopes), thread.state or "")


def was_closed(scope_id: int) -> bool:
    """Whether a scope ended with the last session."""
    return scope_id < _closed_before


def leave(scope: OpenScope) -> None:
    """Close a scope of this thread, and those that were left open inside it, except those of other tasks."""
    thread = _current()
    if thread.scopes[-1] is not scope and _has_tasks(thread):
        thread.scopes = [other for other in thread.scopes if other is not scope]
        _exit_one(thread, scope)
        return
    last = None
    while last is not scope:
        last = thread.scopes.pop()
        _exit_one(thread, last)
        if last is not scope:
            warnings.warn(f"scope {last.name!r} was left open inside {scope.name!r}", RuntimeWarning, stacklevel=4)


def replace_state(name: str | None) -> str | None:
    """Set the state of this thread, or none; the one before is returned.

    Raises:
        TypeError: The name is not a string.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"a state's name is a string, not {name!r}")
    thread = _threads.current
    before, thread.state = thread.state, name
    if before is not None:
        core.exit_state()
    if name is not None:
        core.enter_state(name)
    return before


def depth() -> int:
    """Number of scopes and other ranges that are open on this thread."""
    return core.context_depth() - (_current().state is not None)


def close_all() -> None:
    """End the scopes of all threads: the next session begins without any."""
    global _closed_before
    _closed_before = next_id()
    _current()
    replace_state(None)


def _current() -> _Thread:
    """This thread, without the scopes that ended with the last session."""
    thread = _threads.current
    if thread.scopes and thread.scopes[0][0] < _closed_before:
        _drop_closed(thread)
    return thread


def _has_tasks(thread: _Thread) -> bool:
    """Whether tasks that take turns on this thread have scopes: the core counts only those of the one that runs."""
    return depth() < sum(scope.is_in_path for scope in thread.scopes)


def _drop_closed(thread: _Thread) -> None:
    while thread.scopes:
        _exit_one(thread, thread.scopes.pop())


def _exit_one(thread: _Thread, scope: OpenScope) -> None:
    if not scope.is_in_path:
        return
    if thread.state is None:
        core.exit_scope()
    else:
        core.exit_state()
        core.exit_scope()
        core.enter_state(thread.state)
