"""The end of a checked program: what it does there belongs to it, and its launches are executed too.

`python` waits for threads when a script has ended, calls what `atexit` and `weakref.finalize` keep, and destroys
objects. A check does the same while launches still go to its session.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


class Ending:
    """What a program wants to be called at its end."""

    def __init__(self) -> None:
        self._handlers: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
        self._threads = set(threading.enumerate())
        self._finalizers = set(_finalizers())
        self._unregister = atexit.unregister

    def register(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Callable[..., Any]:
        """Stands in for `atexit.register`."""
        self._handlers.append((function, arguments, named))
        return function

    def unregister(self, function: Callable[..., Any], /) -> None:
        """Stands in for `atexit.unregister`."""
        self._handlers = [one for one in self._handlers if one[0] != function]
        self._unregister(function)

    def run(self) -> None:
        """End the program as `python` does; what fails is printed, and the rest is done."""
        self._join_threads()
        while self._handlers:
            function, arguments, named = self._handlers.pop()
            _attempt(partial(function, *arguments, **named))
        self._join_processes()
        for one in reversed([one for one in _finalizers() if one not in self._finalizers and one.atexit]):
            _attempt(one)

    def destroy_objects(self) -> None:
        """Destroy the objects of a script that has ended; what destroys them may launch too."""
        gc.collect()
        self._join_threads()

    def _join_threads(self) -> None:
        while left := [one for one in threading.enumerate() if one not in self._threads and not one.daemon]:
            # Threads of executors end when these are told to.
            for call in reversed(getattr(threading, "_threading_atexits", [])):
                call()
            for one in left:
                if one is not threading.current_thread():
                    one.join()
                else:
                    self._threads.add(one)

    def _join_processes(self) -> None:
        """As multiprocessing does, which may have been imported before the program."""
        for one in multiprocessing.active_children():
            if not one.daemon and getattr(one, "_parent_pid", None) == os.getpid():
                one.join()


def _finalizers() -> list[Any]:
    return list(weakref.finalize._registry)  # type: ignore[attr-defined]


def _attempt(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - the program's own
        sys.excepthook(*sys.exc_info())


@contextmanager
def watched_ending() -> Iterator[Ending]:
    """Collect what a program wants to be called at its end, while it runs in this block."""
    ending = Ending()
    before = atexit.register, atexit.unregister
    atexit.register, atexit.unregister = ending.register, ending.unregister
    try:
        yield ending
    finally:
        atexit.register, atexit.unregister = before


def refuse_late_launches(code: int) -> None:
    """Let a launch that comes while the interpreter itself ends, too late to be executed, end the process aloud.

    Args:
        code: The exit code then.
    """
    triton = sys.modules.get("triton")
    if triton is None:
        return
    # Names of modules may be gone by then.
    write, leave, kinds = os.write, os._exit, (triton.compiler.CompiledKernel, triton.runtime.JITFunction)
    text = b"bragg: a kernel was launched while the interpreter ended, and was not checked\n"

    def refuse(kernel: Any, *_arguments: Any, **named: Any) -> None:
        if not named.get("warmup"):
            write(2, text)
            leave(code)

    def begin() -> None:
        compiled, function = kinds
        function.run = refuse
        compiled.run = property(lambda kernel: lambda *arguments, **named: refuse(kernel, *arguments, **named))

    atexit.register(begin)
