"""Programs that end their process themselves, or replace it: the check is concluded before that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

# Arguments of `subprocess.Popen` before its environment, which programs give by name.
_BEFORE_ENV = 10


@contextmanager
def concluded_before_leaving(conclude: Callable[[int], int]) -> Iterator[None]:
    """Conclude a check when the program in this block calls `os._exit` or `os.exec…`.

    A program that would replace this process becomes a child of it.

    Args:
        conclude: Writes what was found; takes the program's exit code and gives that of the process.
    """
    own, leave, replace = os.getpid(), os._exit, os.execve

    def leave_concluded(status: int) -> NoReturn:
        if os.getpid() != own:
            leave(status)
        code = conclude(status)
        _flush()
        leave(code)

    def become(path: Any, arguments: Any, environment: Mapping[Any, Any]) -> NoReturn:
        if os.getpid() != own:
            replace(path, arguments, environment)
        _flush()
        done = subprocess.run(list(arguments), executable=path, env=dict(environment), check=False)
        leave_concluded(done.returncode if done.returncode >= 0 else 128 - done.returncode)

    new = {
        "_exit": leave_concluded,
        "execve": become,
        "execv": lambda path, arguments: become(path, arguments, os.environ),
    }
    before = {name: getattr(os, name) for name in new}
    vars(os).update(new)
    try:
        yield
    finally:
        vars(os).update(before)


def end_forked(code: int) -> NoReturn:
    """End a process that was forked from that of the check, and has come to the end of the program too."""
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


@contextmanager
def handed_on(values: Mapping[str, str], folder: str, started: Callable[[int], None]) -> Iterator[None]:
    """Give variables to the processes that are started in this block, also with an environment made for them.

    Args:
        values: The variables.
        folder: Leads their PYTHONPATH.
        started: Is told the number of each process of this interpreter.
    """
    begin = subprocess.Popen.__init__

    def begin_with(popen: Any, *given: Any, **named: Any) -> None:
        environment = os.environ if named.get("env") is None else named["env"]
        path = str(environment.get("PYTHONPATH") or "")
        is_whole = values.items() <= environment.items() and folder in path.split(os.pathsep)
        if not is_whole and len(given) <= _BEFORE_ENV:
            together = os.pathsep.join(filter(None, [folder, path]))
            named["env"] = {**environment, **values, "PYTHONPATH": together}
        begin(popen, *given, **named)
        arguments = given[0] if given else named["args"]
        first = arguments[0] if isinstance(arguments, (list, tuple)) and arguments else arguments
        if os.fspath(first) == sys.executable:
            started(popen.pid)

    subprocess.Popen.__init__ = begin_with  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = begin  # type: ignore[method-assign]
