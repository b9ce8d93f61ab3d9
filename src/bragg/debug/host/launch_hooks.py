"""What a program wants to be called before and after launches: Triton's `launch_enter_hook` and `launch_exit_hook`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["are_wanted", "called_around"]


def are_wanted() -> bool:
    """The program has such hooks."""
    runtime = sys.modules["triton"].knobs.runtime
    return any(map(_is_set, (runtime.launch_enter_hook, runtime.launch_exit_hook)))


@contextmanager
def called_around(name: str, function: Any, given: tuple[Any, ...]) -> Iterator[None]:
    """Call them.

    Args:
        name: Of the kernel.
        function: Tells the hooks more of a launch, `launch_metadata` of the kernel; None: nothing does.
        given: What that function is called with.
    """
    from triton.compiler.compiler import LazyDict

    runtime = sys.modules["triton"].knobs.runtime
    metadata = LazyDict({"name": name, "function": 0, "stream": 0})
    if function is not None:
        metadata.add(function, given)
    _call(runtime.launch_enter_hook, metadata)
    try:
        yield
    finally:
        _call(runtime.launch_exit_hook, metadata)


def _call(hook: Any, metadata: Any) -> None:
    if _is_set(hook):
        hook(metadata)


def _is_set(hook: Any) -> bool:
    """It is a hook, or a chain of them that is not empty."""
    return hook is not None and bool(getattr(hook, "calls", True))
