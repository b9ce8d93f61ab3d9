"""Barriers in shared memory, and the partitions of a kernel that wait for each other by them.

Copies and products that run beside the kernel on a GPU are complete here when they are started, so what is left of a
barrier is to count: it completes a phase when all arrivals and all bytes that were announced have come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bragg.debug.expressions import first_argument
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.flow.place import kernel_line
from bragg.debug.flow.turns import Turns, Workers
from bragg.debug.gluon.shared_memory import SharedMemory, chosen_rows
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.state import Machine, each_tracker, machine, use
from bragg.model.table import Array

# Columns of a barrier: arrivals of a phase, arrivals that are due, bytes that are due, the phase.
_COUNT, _DUE, _BYTES, _PHASE = range(4)


def _place(barrier: SharedMemory, pred: Any = True) -> tuple[Array, Array]:
    """Program and element of the barrier of each active program that a predicate chooses."""
    if not isinstance(barrier, SharedMemory) or barrier.numel != 1 or barrier.element.size_bytes != 8:
        raise KernelFault("a barrier is one int64 in shared memory", hint="Take one of several with .index(i)")
    rows = machine().rows
    offsets = np.broadcast_to(barrier.offset.data.reshape(-1), len(rows))
    chosen = chosen_rows(pred)
    return rows[chosen], offsets[chosen]


def init(barrier: SharedMemory, count: int) -> None:
    """Begin phase 0, which ends after `count` arrivals."""
    rows, offsets = _place(barrier)
    barrier.memory.barriers[rows, offsets] = [count, count, 0, 0]
    for tracker in each_tracker():
        tracker.initialised(barrier.memory, offsets)
    _note(barrier, "initialised", offsets)


def expect(barrier: SharedMemory, bytes_per_cta: Any = None, pred: Any = True, **named: Any) -> None:
    """Arrive, and announce bytes that the phase waits for."""
    size = named.get("bytes", bytes_per_cta)
    _changed(barrier, pred, 1, int(size))


def arrive(barrier: SharedMemory, *, count: int = 1, pred: Any = True, **_options: Any) -> None:
    """Arrive `count` times; the phase is over when all have arrived and announced bytes have come."""
    _changed(barrier, pred, count, 0)


def complete_bytes(barrier: SharedMemory, size_bytes: int, pred: Any = True) -> None:
    """Bytes that were announced, or will be, have come."""
    _changed(barrier, pred, 0, -size_bytes)


def _changed(barrier: SharedMemory, pred: Any, arrivals: int, announced_bytes: int) -> None:
    rows, offsets = _place(barrier, pred)
    state = barrier.memory.barriers[rows, offsets]
    if (state[:, _COUNT] == 0).any():
        raise KernelFault("a barrier is used that was not initialised", hint="Call mbarrier.init before")
    state[:, _DUE] -= arrivals
    state[:, _BYTES] += announced_bytes
    if (state[:, _DUE] < 0).any():
        raise KernelFault("more arrivals at a barrier than its count", hint="Check the count of mbarrier.init")
    is_over = (state[:, _DUE] == 0) & (state[:, _BYTES] == 0)
    state[is_over, _DUE] = state[is_over, _COUNT]
    state[is_over, _PHASE] += 1
    barrier.memory.barriers[rows, offsets] = state
    for tracker in each_tracker():
        tracker.arrived(barrier.memory, rows, offsets, is_over)
    _note(barrier, "arrived at last", offsets)
    machine().writes += 1


def wait(barrier: SharedMemory, phase: Any, pred: Any = True, deps: Any = ()) -> None:
    """Wait until the phase of a parity is over.

    Raises:
        KernelFault: Nobody else runs who could complete it.
    """
    del deps
    parity = as_tensor(phase).data.reshape(-1)
    chosen = chosen_rows(pred)
    parity = np.broadcast_to(parity, len(chosen))[chosen] % 2
    while True:
        rows, offsets = _place(barrier, pred)
        if (barrier.memory.barriers[rows, offsets, _PHASE] % 2 != parity).all():
            for tracker in each_tracker():
                tracker.waited(barrier.memory, rows, offsets, parity)
            return
        turn = machine().turn
        if turn is None:
            raise KernelFault(
                f"deadlock: nobody completes what is waited for: {_state(barrier, rows, offsets, parity)}",
                hint="Check its count, the announced bytes, and the parity of the phase",
            )
        _WAITING[machine()] = _state(barrier, rows, offsets, parity)
        turn()


# What each partition waits for, in words.
_WAITING: WeakKeyDictionary[Machine, str] = WeakKeyDictionary()


def _note(barrier: SharedMemory, what: str, offsets: Array) -> None:
    """Remember where something was done to a barrier."""
    place = kernel_line()
    for offset in set(offsets.tolist()):
        barrier.memory.notes[offset, what] = place


def _state(barrier: SharedMemory, rows: Array, offsets: Array, parity: Array) -> str:
    """The first barrier that is waited for: its name there, what is asked of it, what it lacks, and who touched it."""
    states = barrier.memory.barriers[rows, offsets]
    first = int(np.flatnonzero(states[:, _PHASE] % 2 == parity)[0])
    _, due, missing, phase = states[first].tolist()
    number, count = int(offsets[first]), barrier.memory.barriers.shape[1]
    name = first_argument(*kernel_line(), "wait")
    which = f"{name or 'a barrier'}{f', number {number} of {count},' if count > 1 else ''}"
    told = [f"{which} is waited for with parity {int(parity[first])}, and its phase {phase} is under way"]
    if due or missing:
        told.append(f"it lacks {due} arrival{'' if due == 1 else 's'} and {missing} bytes")
    for what in ("initialised", "arrived at last"):
        place = barrier.memory.notes.get((number, what))
        told.append(f"{what} {'never' if place is None else f'in line {place[1]} of {PurePath(place[0]).name}'}")
    return "; ".join(told)


def warp_specialize(functions_and_args: Any, *others: Any, **named: Any) -> Any:
    """Run the partitions of a kernel in turns; gives what the first one returns.

    Raises:
        KernelFault: All partitions wait.
    """
    if not isinstance(functions_and_args, tuple) or not isinstance(functions_and_args[0], tuple):
        raise Unsupported("this form of warp_specialize is not supported", hint="Pass (function, arguments) pairs")
    del others, named
    outer, results = machine(), [None] * len(functions_and_args)
    partitions, workers = [], Workers()
    for place, (function, arguments) in enumerate(functions_and_args):
        own = Machine(outer.grid, outer.linear, outer.listeners, outer.num_warps)
        own.rows = outer.rows
        partitions.append(Turns(own, _runner(results, place, function, arguments), workers))
    machines = [one.machine for one in partitions]
    for tracker in each_tracker():
        tracker.split(machines, [getattr(function, "__name__", "") for function, _ in functions_and_args])
    try:
        _run_all(partitions)
    finally:
        for one in partitions:
            one.cancel()
        workers.end()
        use(outer)
        for tracker in each_tracker():
            tracker.joined(machines)
    return results[0]


def _runner(results: list[Any], place: int, function: Callable[..., Any], arguments: Any) -> Callable[[], Any]:
    def run() -> None:
        results[place] = function(*arguments)

    return run


def _run_all(partitions: Sequence[Turns]) -> None:
    waiting = list(partitions)
    while waiting:
        has_changed = False
        for one in list(waiting):
            before = one.machine.writes
            one.resume()
            has_changed |= one.is_done or one.machine.writes != before
            if one.is_done:
                waiting.remove(one)
            if one.error is not None:
                raise one.error
        if not has_changed and waiting:
            file, line = waiting[0].waits_at
            told = [f"line {one.waits_at[1]}: {_WAITING.get(one.machine, 'a turn')}" for one in waiting]
            fault = KernelFault(
                f"deadlock: {len(waiting)} partitions wait for barriers that nobody completes: {' | '.join(told)}",
                hint="Check counts, announced bytes, and the parity of phases",
            )
            fault.place("", file, line)
            raise fault
