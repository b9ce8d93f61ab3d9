"""Kernels whose programs wait for each other: one program at a time, each on a thread of its own, taking turns.

A program gives its turn away at every further trip of a `while`. Programs are started in order, and another one only
when all that were started wait: so a kernel that a GPU can finish with any number of resident programs finishes here.
But some programs begin while those before them have just changed memory by an atomic operation: when that was to take a
lock, they must respect it. When many have come and gone, a program runs on the thread of the launch, and what it waits
for above it on the stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.code.python_nodes import name_of, walk
from bragg.debug.faults import KernelFault, RuntimeFault, TooManyPrograms
from bragg.debug.flow.called import texts_of
from bragg.debug.flow.place import kernel_line
from bragg.debug.flow.program import Program
from bragg.debug.flow.text import Text
from bragg.debug.flow.turns import Turns, Workers
from bragg.debug.state import Listeners, Machine, use

# Rounds in which loops only change their own names, as a search does, and one that counts its trips for ever.
_MOST_IDLE_ROUNDS = 10_000

# Programs that are interrupted together: more than the locks that kernels share rows among in most cases.
_MOST_INTERRUPTED = 32

# Programs that are interrupted at all. Later ones run on the thread of the launch while none before them waits: 2,000
# programs under one lock take 0.4 s instead of 0.9.
_INTERRUPTED = 128

# Threads at a time: as many programs of one warp as a GPU of 132 processors holds at once.
_MOST_RESIDENT = 4224


def waits(program: Program) -> bool:
    """A function, or one that it calls, has a `while` that watches memory."""
    return any(_waits(text) for text in texts_of(program))


def _waits(text: Text) -> bool:
    if waits not in text.found:
        is_waiting = any(_watches(node) for node in text.nodes if isinstance(node, ast.While))
        is_waiting |= any(name_of(node) == "atomic_poll" for node in text.nodes if isinstance(node, ast.Call))
        text.found[waits] = is_waiting
    found: bool = text.found[waits]
    return found


def _watches(loop: ast.While) -> bool:
    in_test = {id(node) for node in walk(loop.test)}
    calls = [node for node in walk(loop) if isinstance(node, ast.Call)]
    return any(
        name_of(call).startswith("atomic_") or (name_of(call) == "load" and (id(call) in in_test or _is_volatile(call)))
        for call in calls
    )


def _is_volatile(call: ast.Call) -> bool:
    return any(keyword.arg == "volatile" for keyword in call.keywords)


def run_in_turns(
    grid: tuple[int, int, int],
    numbers: Sequence[int],
    listeners: Listeners,
    run: Callable[[], Any],
    kernel: str,
    num_warps: int = 4,
) -> None:
    """Execute programs that may wait for each other.

    Args:
        grid: Programs along the three axes.
        numbers: Linear numbers of the programs to execute.
        listeners: Called with what happens.
        run: Executes the program of the current machine.
        kernel: Name of the kernel.
        num_warps: Of each program.

    Raises:
        KernelFault: All programs wait, and none changes memory any more.
    """
    workers = Workers()
    target = listeners.target
    resident = target.resident(num_warps) if target and listeners.is_resident else None
    schedule = _Schedule(
        iter(numbers),
        lambda number: Machine(grid, np.array([number]), listeners, num_warps),
        lambda machine: Turns(machine, run, workers),
        run,
        min(resident or _MOST_RESIDENT, _MOST_RESIDENT),
    )
    try:
        schedule.run()
    except _Deadlock:
        if resident is not None and schedule.has_more():
            raise _too_many(schedule.stuck, kernel, resident, len(numbers), target.name if target else "") from None
        raise _deadlock(schedule.stuck, kernel) from None
    finally:
        for one in schedule.waiting:
            one.cancel()
        workers.end()
        use(None)


class _Deadlock(Exception):  # noqa: N818
    """All programs wait, and none changes memory any more."""


@dataclass
class _Direct:
    """A program on the thread of the launch: a change of threads takes as long as several accesses.

    Attributes:
        machine: Executes the program.
        waits_at: Where it waits.
        writes: How often it had changed memory when it waited last.
        moves: How often it had changed its own names then.
    """

    machine: Machine
    waits_at: tuple[str, int] = ("", 0)
    writes: int = 0
    moves: int = 0


class _Schedule:
    """The order in which programs run.

    Args:
        numbers: Of the programs that have not begun.
        machine: Makes the machine of a program.
        thread: Puts a program on a thread.
        run: The program of the current machine.
        most: Programs that are under way at once.
    """

    def __init__(
        self,
        numbers: Iterator[int],
        machine: Callable[[int], Machine],
        thread: Callable[[Machine], Turns],
        run: Callable[[], Any],
        most: int,
    ) -> None:
        self.waiting: list[Turns] = []
        self._numbers, self._machine, self._thread, self._run, self._most = numbers, machine, thread, run, most
        self._direct: _Direct | None = None
        self._begun = self._idle_rounds = 0
        self._next_begun = 1

    def run(self) -> None:
        """Run all programs."""
        while self._go_round(made_progress=False, has_moved=False):
            pass

    def has_more(self) -> bool:
        """Programs have not begun; one of them is left out from now on."""
        return next(self._numbers, None) is not None

    @property
    def stuck(self) -> list[Turns | _Direct]:
        """Programs that are under way."""
        return [*([self._direct] if self._direct else []), *self.waiting]

    def _go_round(self, *, made_progress: bool, has_moved: bool) -> bool:
        """Let each program that waits continue, or begin another; False: all have ended.

        Args:
            made_progress: Somebody has changed memory since the last round.
            has_moved: Or its own names.
        """
        for one in list(self.waiting):
            before, moves = one.machine.writes, one.machine.moves
            self._resume(one)
            made_progress |= one.is_done or one.machine.writes != before
            has_moved |= one.machine.moves != moves
        if made_progress:
            self._idle_rounds, self._next_begun = 0, 1
        elif not self._begin_some():
            if not self.stuck:
                return False
            if self._idle_rounds > (_MOST_IDLE_ROUNDS if has_moved else 1):
                raise _Deadlock
            self._idle_rounds += 1
        return True

    def _begin_some(self) -> bool:
        """Begin programs, twice as many as the last ones that let nobody go on: thousands may meet. False: none."""
        most = self._next_begun if self.stuck else 1
        self._next_begun = 2 * most
        for count in range(most):
            number = next(self._numbers, None) if len(self.stuck) < self._most else None
            if number is None:
                return count > 0
            self._idle_rounds = 0
            self._begin(number)
        return True

    def _begin(self, number: int | None) -> None:
        """Run a new program until it waits or ends, and further ones as long as each was interrupted before that."""
        if self._begun >= _INTERRUPTED and not self.stuck and number is not None:
            self._run_directly(number)
            return
        most = min(len(self.stuck) + _MOST_INTERRUPTED, self._most)
        while number is not None:
            one = self._thread(self._machine(number))
            if self._begun < _INTERRUPTED:
                one.machine.after_atomic = one.interrupt
            self._begun += 1
            self.waiting.append(one)
            self._resume(one)
            goes_on = one.was_interrupted and not one.is_done and len(self.stuck) < most
            number = next(self._numbers, None) if goes_on else None

    def _resume(self, one: Turns) -> None:
        one.resume()
        if one.is_done:
            self.waiting.remove(one)
            one.machine.listeners.tell_step(1)
        if one.error is not None:
            raise one.error

    def _run_directly(self, number: int) -> None:
        direct = self._direct = _Direct(self._machine(number))
        direct.machine.turn = lambda: self._wait_directly(direct)
        use(direct.machine)
        with direct.machine.listeners.arithmetic():
            self._run()
        self._direct = direct.machine.turn = None  # A circle would have to be found by the garbage collector.
        direct.machine.listeners.tell_step(1)

    def _wait_directly(self, direct: _Direct) -> None:
        """Let others continue; this program lies below them on the stack."""
        now = direct.machine
        direct.waits_at = kernel_line()
        changed, moved = now.writes != direct.writes, now.moves != direct.moves
        direct.writes, direct.moves = now.writes, now.moves
        self._go_round(made_progress=changed, has_moved=moved)
        use(now)


def _too_many(
    waiting: Sequence[Turns | _Direct], kernel: str, resident: int, programs: int, target: str
) -> KernelFault:
    fault = TooManyPrograms(
        f"deadlock: all {len(waiting)} programs that {target} holds at once wait for some of the other"
        f" {programs - len(waiting)}, which start when one of these ends",
        hint=f"Launch at most {resident} programs, and fewer where registers or shared memory are short;"
        " launch_cooperative_grid=True makes a launch that does not fit fail",
    )
    fault.place(kernel, *waiting[0].waits_at)
    return fault


def _deadlock(waiting: Sequence[Turns | _Direct], kernel: str) -> KernelFault:
    first = waiting[0]
    place = tuple(int(first.machine.program_ids(axis)[0]) for axis in range(3))
    fault = RuntimeFault(
        f"deadlock: {len(waiting)} programs wait for each other, among them {place}",
        hint="Release every lock that is taken, and let no program wait for a later one",
    )
    fault.place(kernel, *first.waits_at)
    return fault
