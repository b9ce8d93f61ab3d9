"""Named regions of the program."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from bragg.proton.recording.metric_values import record
from bragg.proton.recording.open_scopes import OpenScope, enter, is_on, last_entered, leave, opened_by, was_closed

__all__ = ["cpu_timed_scope", "enter_scope", "exit_scope", "scope"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CPU_TIME = "cpu_time"


class scope:  # noqa: N801 (Proton's name)
    """A named region: context manager and decorator, reusable and re-entrant.

    Args:
        name: Shown in call paths.
        metrics: Values added to the region each time it is entered, by name: `name (unit)(kind)`, where unit and kind
            (`inc`, `exc`, `pty`) may be missing. Numbers, lists of them, tensors of any device.

    Attributes:
        id: Of the region as it was entered last; None when nothing was recorded then.
    """

    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.metrics = metrics
        self.id: int | None = None

    def __enter__(self) -> scope:
        if not is_on():
            self.id = None
            return self
        opened = enter(self.name, self)
        self.id = opened.id
        if self.metrics:
            _record_or_leave(opened, self.metrics)
        return self

    def __exit__(self, *raised: object) -> None:
        if self.id is None:
            return
        opened = opened_by(self)
        if opened is not None:
            leave(opened)
        elif not was_closed(self.id):
            warnings.warn(
                f"scope {self.name!r} was ended before, by a scope around it (scopes of generators that run by turns "
                "close each other), or was entered on another thread",
                RuntimeWarning,
                stacklevel=2,
            )

    def __call__(self, function: _Function) -> _Function:
        """The function inside this region."""

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            with type(self)(self.name, self.metrics):
                return function(*arguments, **options)

        return call  # type: ignore[return-value]


class cpu_timed_scope(scope):  # noqa: N801 (Proton's name)
    """A region that records how long it took on the CPU, as `cpu_time (ns)(exc)`.

    Raises:
        ValueError: The metrics contain `cpu_time`.
    """

    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, metrics)
        if metrics and _CPU_TIME in metrics:
            raise ValueError(f"The metric name '{_CPU_TIME}' is reserved.")
        self._started_ns = _Starts()

    def __enter__(self) -> cpu_timed_scope:
        self._started_ns.times.append(time.perf_counter_ns())
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        elapsed_ns = time.perf_counter_ns() - self._started_ns.times.pop()
        if self.id is not None and opened_by(self) is not None:
            record({f"{_CPU_TIME} (ns)(exc)": elapsed_ns})
        super().__exit__(*raised)


class _Starts(threading.local):
    """When a thread entered each scope of one object, outermost first."""

    def __init__(self) -> None:
        self.times: list[int] = []


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Open a region that `exit_scope` closes on the same thread.

    Returns:
        Its id; None when nothing is recorded.
    """
    if not is_on():
        return None
    opened = enter(name)
    if metrics:
        _record_or_leave(opened, metrics)
    return opened.id


def exit_scope(name: str | None = None, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Close the region that `enter_scope` opened last on this thread.

    Args:
        name: The name it must have.
        metrics: Values added to it.

    Returns:
        Its id; None when nothing is recorded.

    Raises:
        ValueError: It has another name; it stays open.
        UnbalancedScope: None is open, or one that was entered by `with` is open inside it.
    """
    if not is_on():
        return None
    opened = last_entered()
    if name and name != opened.name:
        raise ValueError(f"Scope name mismatch: {name} != {opened.name}")
    try:
        if metrics:
            record(metrics)
    finally:
        leave(opened)
    return opened.id


def _record_or_leave(opened: OpenScope, metrics: Mapping[str, Any]) -> None:
    """Record values of a region that was just opened; it is not open if they cannot be recorded."""
    try:
        record(metrics)
    except BaseException:
        leave(opened)
        raise
