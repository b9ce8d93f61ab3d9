"""Kernels whose programs wait for each other: one program at a time, each on a thread of its own, taking turns.

A program gives its turn away at every further trip of a `while`. Programs are started in order, and another one only
when all that were started wait: so a kernel that a GPU can finish with any number of resident programs finishes here.
But some programs begin while those before them have just changed memory by an atomic operation: when that was to take a
lock, they must respect it.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, RuntimeFault
from bragg.debug.flow.program import Program, python_function
from bragg.debug.flow.turns import Turns
from bragg.debug.foreign import is_jitted
from bragg.debug.state import Listeners, Machine, use

__all__ = ["run_in_turns", "waits"]

# Rounds in which loops only change their own names, as a search does, and one that counts its trips for ever.
_MOST_IDLE_ROUNDS = 10_000

# Programs that are interrupted together: more than the locks that kernels share rows among in most cases.
_MOST_INTERRUPTED = 32

# Threads at a time: as many programs as a GPU of 132 processors holds at once with 16 on each, rounded down.
_MOST_RESIDENT = 2048


def waits(program: Program) -> bool:
    """A function, or one that it calls, has a `while` that watches memory."""
    shapes = [_shape_of_text(program)] if program.replaced is not None else []
    return any(one.has_waiting_loop for one in [*shapes, *_shapes(program.function, set())])


@dataclass(frozen=True)
class _Shape:
    """What matters of a function's text: whether it waits, and what it calls."""

    has_waiting_loop: bool
    called: tuple[ast.expr, ...]


_SHAPES: weakref.WeakKeyDictionary[FunctionType, tuple[CodeType, _Shape]] = weakref.WeakKeyDictionary()


def _shape_of(function: FunctionType) -> _Shape:
    known = _SHAPES.get(function)
    if known is None or known[0] is not function.__code__:
        known = _SHAPES[function] = function.__code__, _shape_of_text(Program.of(function))
    return known[1]


def _shape_of_text(program: Program) -> _Shape:
    if not program.is_rewritten:
        return _Shape(False, ())
    tree = program.parsed()
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    is_waiting = any(_watches(call, call in list(ast.walk(loop.test))) for loop in loops for call in _calls(loop))
    is_waiting |= any(_name_of(call) == "atomic_poll" for call in _calls(tree))
    called = (call.func for call in _calls(tree))
    return _Shape(is_waiting, tuple(one for one in called if not _is_tritons(one, program.function)))


def _is_tritons(expression: ast.expr, function: FunctionType) -> bool:
    """`tl.load` and the like, which do not wait by themselves."""
    if not (isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name)):
        return False
    module = function.__globals__.get(expression.value.id)
    return isinstance(module, ModuleType) and module.__name__.startswith("triton.language")


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (child for child in ast.walk(node) if isinstance(child, ast.Call))


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def _watches(call: ast.Call, is_in_test: bool) -> bool:
    name = _name_of(call)
    is_volatile = any(keyword.arg == "volatile" for keyword in call.keywords)
    return name.startswith("atomic_") or (name == "load" and (is_in_test or is_volatile))


def _shapes(function: FunctionType, seen: set[int]) -> Iterator[_Shape]:
    """Of the function and of the @triton.jit functions it calls; Triton's own never wait."""
    if id(function) in seen or function.__module__.startswith("triton."):
        return
    seen.add(id(function))
    shape = _shape_of(function)
    yield shape
    for expression in shape.called:
        target = _called(expression, function)
        if is_jitted(target):
            yield from _shapes(python_function(target), seen)


def _called(expression: ast.expr, function: FunctionType) -> Any:
    if isinstance(expression, ast.Name):
        return function.__globals__.get(expression.id)
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        module = function.__globals__.get(expression.value.id)
        return getattr(module, expression.attr, None) if isinstance(module, ModuleType) else None
    return None


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
        listeners: Who is told.
        run: Executes the program of the current machine.
        kernel: Name of the kernel.
        num_warps: Of each program.

    Raises:
        KernelFault: All programs wait, and none changes memory any more.
    """
    waiting: list[Turns] = []
    to_start = iter(numbers)
    try:
        _take_turns(
            waiting,
            to_start,
            lambda number: Turns(Machine(grid, np.array([number]), listeners, num_warps), run),
            kernel,
        )
    finally:
        for one in waiting:
            one.cancel()
        use(None)


def _take_turns(waiting: list[Turns], to_start: Iterator[int], start: Callable[[int], Turns], kernel: str) -> None:
    idle_rounds = 0
    while True:
        made_progress = has_moved = False
        for one in list(waiting):
            before, moves = one.machine.writes, one.machine.moves
            _resume(one, waiting)
            made_progress |= one.is_done or one.machine.writes != before
            has_moved |= one.machine.moves != moves
        if made_progress:
            idle_rounds = 0
            continue
        number = next(to_start, None) if len(waiting) < _MOST_RESIDENT else None
        if number is not None:
            _start_some(number, to_start, start, waiting)
            idle_rounds = 0
        elif not waiting:
            return
        elif idle_rounds > (_MOST_IDLE_ROUNDS if has_moved else 1):
            raise _deadlock(waiting, kernel)
        else:
            idle_rounds += 1


def _start_some(
    number: int | None, to_start: Iterator[int], start: Callable[[int], Turns], waiting: list[Turns]
) -> None:
    """Run a new program until it waits or ends, and further ones as long as each was interrupted before that."""
    most = min(len(waiting) + _MOST_INTERRUPTED, _MOST_RESIDENT)
    while number is not None:
        one = start(number)
        one.machine.after_atomic = one.interrupt
        waiting.append(one)
        _resume(one, waiting)
        goes_on = one.was_interrupted and not one.is_done and len(waiting) < most
        number = next(to_start, None) if goes_on else None


def _resume(one: Turns, waiting: list[Turns]) -> None:
    one.resume()
    if one.is_done:
        waiting.remove(one)
        one.machine.listeners.tell_step(1)
    if one.error is not None:
        raise one.error


def _deadlock(waiting: list[Turns], kernel: str) -> KernelFault:
    first = waiting[0]
    place = tuple(int(first.machine.program_ids(axis)[0]) for axis in range(3))
    fault = RuntimeFault(
        f"deadlock: {len(waiting)} programs wait for each other, among them {place}",
        hint="Release every lock that is taken, and let no program wait for a later one",
    )
    fault.place(kernel, *first.waits_at)
    return fault
