"""Running the target as a child whose terminal, signals and exit status are its own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from bragg.errors import UsageError

_PASSED_ON = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
_AWAITED = _PASSED_ON | {signal.SIGCHLD}
_ENDING = (signal.SIGTERM, signal.SIGHUP)
# Python ignores these in itself; a child expects the default, as `subprocess` gives it.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
# A terminal that closes, a scheduler and a service manager end all processes of a job, one after another.
_SAME_SIGNAL_S = 0.1


@dataclass(frozen=True)
class Ended:
    """A child that has ended.

    Attributes:
        pid: Its process id.
        exit_code: Its exit status; negative: the signal that ended it.
    """

    pid: int
    exit_code: int


def run_child(command: Sequence[str], environ: Mapping[str, str]) -> Ended:
    """Start a command and wait for its end, passing on the signals that this process gets meanwhile.

    Raises:
        UsageError: It cannot be started.
    """
    # Held from before the start: a signal in between would end this process and leave the child alone.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        pid = _start(command, environ, mask)
        return Ended(pid, _wait(pid))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def interrupted_by_endings() -> Iterator[None]:
    """A block in which a signal that would end this process raises KeyboardInterrupt, as Ctrl-C does."""
    is_main = threading.current_thread() is threading.main_thread()  # Python lets no other thread set handlers.
    ending = [number for number in _ENDING if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _start(command: Sequence[str], environ: Mapping[str, str], mask: set[int]) -> int:
    try:
        return os.posix_spawnp(command[0], list(command), environ, setsigmask=mask, setsigdef=_RESTORED)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error


def _wait(pid: int) -> int:
    # A library's thread that blocks no signals may take SIGCHLD away. No time limit instead: `sigtimedwait` of Python
    # invents a signal where this process was stopped for longer than that.
    teller = threading.Thread(target=_tell_end, args=(pid, threading.get_ident()), daemon=True)
    teller.start()
    seen: set[int] = set()
    while True:
        arrived = signal.sigwaitinfo(_AWAITED)
        seen.add(arrived.si_signo)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            teller.join()
            exit_code = os.waitstatus_to_exitcode(status)
            if -exit_code in _PASSED_ON - seen:
                signal.sigtimedwait({-exit_code}, _SAME_SIGNAL_S)  # else it would end this process with no profile
            return exit_code
        # From a process; a terminal's key (SI_KERNEL, 128) has reached the child as well.
        if arrived.si_signo != signal.SIGCHLD and arrived.si_code <= 0:
            os.kill(pid, arrived.si_signo)


def _tell_end(pid: int, thread: int) -> None:
    with suppress(ChildProcessError):  # That thread has seen it by itself.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        signal.pthread_kill(thread, signal.SIGCHLD)
