"""What a program wants to be called before and after launches: Triton's `launch_enter_hook` and `launch_exit_hook`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bragg.debug.host.launch import Launch
from bragg.debug.host.specialization import specialize
from bragg.debug.state import Listeners


def run_between_hooks(launch: Launch, listeners: Listeners) -> None:
    """Execute a launch, and call what the program wants to be called."""
    runtime = sys.modules["triton"].knobs.runtime
    if not (_is_set(runtime.launch_enter_hook) or _is_set(runtime.launch_exit_hook)):
        launch.run(listeners)
        return
    compiled = specialize(launch, None)
    function = getattr(launch.jitted, "launch_metadata", None)
    with called_around(compiled.name, function, (launch.grid, compiled.metadata, launch.arguments)):
        launch.run(listeners)


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
