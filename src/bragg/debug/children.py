"""Processes that a checked program starts: their launches are checked too, and what is found there is reported.

Each process writes its report into a directory after every launch that changes it, so that nothing is lost when the
process is killed. The checked program's process reads them at the end.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from bragg.debug.host.leaving import handed_on
from bragg.debug.outbox import Outbox
from bragg.debug.running import RunningProcesses

if TYPE_CHECKING:
    from bragg.debug.session import CheckedSession
    from bragg.debug.targets import Target

_DIRECTORY = "BRAGG_CHECK_DIR"
_CHOICE = "BRAGG_CHECK_CHOICE"
_INJECTED = str(Path(__file__).parent / "inject")


@contextmanager
def with_children(session: CheckedSession) -> Iterator[Callable[[bool], None]]:
    """Check the processes that are started inside of a block as well.

    Yields:
        What adds their findings to those of the session, once. True: it waits for them; False: it leaves those that
        still run for later.
    """
    with tempfile.TemporaryDirectory(prefix="bragg-check-") as name:
        directory = Path(name)
        path = os.pathsep.join([_INJECTED, *filter(None, [os.environ.get("PYTHONPATH")])])
        limit_s = session.patience and session.patience.limit_s
        choice = {
            "checkers": session.checker_names,
            "program": session.only,
            "limit_s": limit_s,
            "target": session.target.name,
        }
        values = {_DIRECTORY: name, _CHOICE: json.dumps(choice), "PYTHONPATH": path}
        running = RunningProcesses(directory)
        own = {name: value for name, value in values.items() if name != "PYTHONPATH"}
        with _environment(values), handed_on(own, _INJECTED, running.mark):
            _follow_forks(session, directory)
            try:
                yield partial(_collect, session, directory)
            finally:
                session.outbox = None


def _collect(session: CheckedSession, directory: Path, waits: bool) -> None:
    """Add what other processes have found; those that do not end in time are reported."""
    running = RunningProcesses(directory)
    left = running.wait() if waits else running.launching()
    for pid in left if waits else ():
        session.report.refuse(f"process {pid}, which the program has started, still runs: it was not checked further")
    for file in sorted(directory.glob("*.report")):
        if waits or int(file.stem) not in left:
            session.report.absorb(*pickle.loads(file.read_bytes()))
            file.unlink()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _follow_forks(session: CheckedSession, directory: Path) -> None:
    """A process that was forked has a report of its own."""
    parent = os.getpid()

    def become_child() -> None:
        if os.environ.get(_DIRECTORY) == str(directory) and os.getpid() != parent:
            session.report.clear()
            session.outbox = Outbox(directory)
            RunningProcesses(directory).mark(launches=True)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=become_child)


def start() -> None:
    """Check this process, which a checked program has started, as soon as it imports Triton."""
    from bragg.debug.host.driver import has_gpu
    from bragg.debug.host.imports import when_imported

    directory = os.environ.get(_DIRECTORY)
    if not directory or not Path(directory).is_dir():
        return
    running = RunningProcesses(Path(directory))
    running.mark()
    values = {name: os.environ[name] for name in (_DIRECTORY, _CHOICE)}
    _KEPT.enter_context(handed_on(values, _INJECTED, running.mark))

    def check_torch(torch: ModuleType) -> None:
        from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda

        use_cpu_for_cuda(torch)

    def check_triton(_triton: ModuleType) -> None:
        from bragg.debug.host.patience import Patience
        from bragg.debug.session import CheckedSession, checking, chosen_checkers

        choice = json.loads(os.environ[_CHOICE])
        program = choice["program"] and tuple(choice["program"])
        patience = Patience(choice["limit_s"], lambda text: print(text, file=sys.stderr, flush=True))
        checkers = chosen_checkers(choice["checkers"])
        session = CheckedSession(checkers, program, patience=patience, target=choice["target"])
        session.outbox = Outbox(Path(directory))
        running.mark(launches=True)
        _follow_forks(session, Path(directory))
        _KEPT.enter_context(_host(session.target))
        _KEPT.enter_context(checking(session))
        atexit.register(session.finish)

    if not has_gpu():
        when_imported("torch", check_torch)
    when_imported("triton", check_triton)


# What lasts as long as the process.
_KEPT = ExitStack()


@contextmanager
def _host(target: Target) -> Iterator[None]:
    from bragg.debug.host.target import host_without_gpu

    with host_without_gpu(target):
        yield
