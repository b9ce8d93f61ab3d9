"""Launches that take long: after ten seconds it is said what runs, where and how far it is; a limit ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from bragg.debug.flow.place import kernel_line
from bragg.debug.host.launch import Launch
from bragg.errors import GateExceeded

# Said again when twice the time is over.
_FIRST_WORD_S = 10.0
_ADVICE = (
    "Ctrl-C ends the check and shows what was found; --limit SECONDS ends every launch after that time, and "
    "--program X,Y,Z executes one program alone"
)
_UNITS = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


class Status(Protocol):
    """A line that shows what is done now."""

    def show(self, make: Callable[[], str]) -> None:
        """Show a text, which is made only if the time has come."""

    def end(self) -> None:
        """Show nothing any more."""


class LaunchTooLong(GateExceeded):
    """A launch took longer than the user allows."""


class Patience:
    """How long launches may take, and who is told of those that take long.

    Attributes:
        limit_s: A launch ends after this time; None: whenever it ends.
        status: Is shown at every step what runs and how far it is; None: nobody is.

    Args:
        limit_s: Likewise.
        say: Called with one line.
        clock: Seconds.
        status: As above.
    """

    def __init__(
        self,
        limit_s: float | None = None,
        say: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        status: Status | None = None,
    ) -> None:
        self.limit_s = limit_s
        self.say = say or (lambda _text: None)
        self.clock = clock
        self.status = status


class Watched:
    """One launch, asked after every trip of a loop and every batch of programs.

    Args:
        launch: The launch, which begins now.
        patience: How long it may take.
    """

    def __init__(self, launch: Launch, patience: Patience) -> None:
        self._launch = launch
        self._patience = patience
        self._start_s = patience.clock()
        self._next_word_s = _FIRST_WORD_S
        self._n_all = 1 if launch.only else launch.programs
        self._n_done = 0

    @property
    def n_left(self) -> int:
        """Programs that have not ended."""
        return self._n_all - self._n_done

    def begin(self) -> None:
        """The checkers are ready, after Triton's compiler where one asks it; the kernel runs from now on.

        Raises:
            LaunchTooLong: The time is over.
        """
        now_s, limit_s = self._patience.clock(), self._patience.limit_s
        taken_s, self._start_s = now_s - self._start_s, now_s
        what = f"its checkers, with Triton's compiler for bank-conflict, took {taken_s:.0f} s"
        if limit_s is not None and taken_s > limit_s:
            raise LaunchTooLong(
                f"{self._name()} has not run: {what} to begin, longer than --limit {limit_s:g} s",
                hint="Give it more time, or leave out what compiles it: --without bank-conflict",
            )
        if taken_s > _FIRST_WORD_S:
            self._patience.say(f"{self._name()} begins now: {what}")

    def step(self, n_ended: int) -> None:
        """Some programs have ended, or one is in the middle of a loop.

        Raises:
            LaunchTooLong: The time is over.
        """
        self._n_done += n_ended
        taken_s = self._patience.clock() - self._start_s
        limit_s = self._patience.limit_s
        if limit_s is not None and taken_s > limit_s:
            raise LaunchTooLong(
                f"{self._name()} took longer than --limit {limit_s:g} s{self._place('was')}: {self._progress()}",
                hint="Check one program of it with --program X,Y,Z, or give it more time",
            )
        if self._patience.status is not None:
            self._patience.status.show(lambda: f"{self._name()}: {self._progress()}")
        if taken_s > self._next_word_s:
            self._next_word_s *= 2
            progress = f"{self._progress()}{self._rest(taken_s)}"
            self._patience.say(f"{self._name()} has run for {taken_s:.0f} s{self._place('is')}: {progress}. {_ADVICE}")

    def _name(self) -> str:
        code = self._launch.program.function.__code__
        return f"kernel {self._launch.kernel} ({code.co_filename}:{code.co_firstlineno})"

    def _place(self, verb: str) -> str:
        file, line = kernel_line()
        return f" and {verb} at line {line}" if file else ""

    def _progress(self) -> str:
        return f"{self._n_done:,} of {self._n_all:,} programs are done"

    def _rest(self, taken_s: float) -> str:
        """How long the rest takes at this rate; empty while no program has ended."""
        if not self._n_done or not self.n_left:
            return ""
        rest_s = taken_s / self._n_done * self.n_left
        seconds, unit = next(((size, name) for size, name in _UNITS if rest_s >= 2 * size), _UNITS[-1])
        return f", the others take about {rest_s / seconds:,.0f} {unit} more"
