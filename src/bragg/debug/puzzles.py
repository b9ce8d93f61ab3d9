"""Self checks for exercises: is what a kernel computes right, and is the way to it?

from bragg.debug import puzzles

puzzles.self_check(add, (4,), x, z, 200, expected=x + 10, B0=64)

Notebooks that were written for triton_viz run with `import bragg.debug.puzzles as triton_viz`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from bragg.debug.flow.jitted import is_jitted
from bragg.debug.host.launch import prepare
from bragg.debug.session import CheckedSession, chosen_checkers
from bragg.debug.stepping.stops import Watch
from bragg.debug.switch import InterpretedKernel
from bragg.errors import UsageError


def self_check(
    kernel: Any,
    grid: Any,
    *arguments: Any,
    expected: Any,
    rtol: float = 1e-3,
    atol: float = 1e-3,
    **named: Any,
) -> bool:
    """Launch a kernel and say whether it is right; where it is not, who wrote the first wrong element.

    Args:
        kernel: A @triton.jit function.
        grid: As Triton takes it.
        arguments: By position.
        expected: What the last tensor among the arguments must hold, or tensors by parameter.
        rtol: How much of an expected value may be missing.
        atol: What may be missing beside that.
        named: Arguments by name.

    Raises:
        KernelFault: The kernel cannot continue.
        UsageError: The launch does not fit the kernel, or a parameter that is expected is not a tensor of it.
    """
    before = copy.deepcopy((arguments, named))
    session = CheckedSession(chosen_checkers())
    session.run(kernel, grid, arguments, named)
    prepared = prepare(kernel, grid, arguments, named)
    tensors = {buffer.name: prepared.arguments[buffer.name] for buffer in prepared.buffers}
    wanted = expected if isinstance(expected, Mapping) else {list(tensors)[-1]: expected}
    if unknown := [name for name in wanted if name not in tensors]:
        raise UsageError(f"{prepared.kernel} has no tensor {unknown[0]!r}", hint=f"It has: {', '.join(tensors)}")
    wrong = {name: _first_difference(tensors[name], value, rtol, atol) for name, value in wanted.items()}
    lines = [_explain(name, at, before, kernel, grid) for name, at in wrong.items() if at is not None]
    print("\n".join([*lines, *session.report.finding_lines(), _verdict(bool(lines), session)]))
    return not lines and not len(session.report)


def _first_difference(actual: Any, expected: Any, rtol: float, atol: float) -> tuple[tuple[int, ...], Any, Any] | None:
    """Index, actual and expected value of the first element that differs."""
    ours, theirs = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    theirs = np.broadcast_to(theirs, ours.shape)
    places = np.argwhere(~np.isclose(ours, theirs, rtol, atol, equal_nan=True))
    if not len(places):
        return None
    index = tuple(places[0].tolist())
    return index, ours[index], theirs[index]


def _explain(name: str, found: tuple[tuple[int, ...], Any, Any], before: Any, kernel: Any, grid: Any) -> str:
    """What is wrong with an element, and who wrote it: the launch is repeated with what was there before it."""
    index, actual, expected = found
    place = f"{name}[{', '.join(map(str, index))}]"
    watch = Watch(place, tell=lambda text: None)
    arguments, named = before
    CheckedSession([*chosen_checkers(), watch.checker]).run(kernel, grid, arguments, named)
    return f"wrong: {place} is {actual:g}, not {expected:g}\n  last: {watch.last}"


def _verdict(is_wrong: bool, session: CheckedSession) -> str:
    if is_wrong or len(session.report):
        return "Not yet."
    return f"Correct: {session.report.programs} programs, nothing found."


_session = CheckedSession(chosen_checkers())


def trace(kernel: Any = None, *_clients: Any, **_options: Any) -> Any:
    """The kernel, checked at each launch; without one, a decorator.

    The arguments of triton_viz are ignored: all checkers that are on by default watch.
    """
    if kernel is None or not (is_jitted(kernel) or hasattr(kernel, "fn")):
        return trace
    return InterpretedKernel(kernel, lambda *given: _session.run(*given))


def launch(**_options: Any) -> bool:
    """Say what was found since the last `clear`; True: an access was out of bounds, as triton_viz answers."""
    print("\n".join(_session.report.lines()))
    return any(finding.rule == "out-of-bounds" for finding in _session.report)


def clear() -> None:
    """Forget what was found."""
    global _session
    _session = CheckedSession(chosen_checkers())


# What older notebooks import, and call before each exercise.
interpreter: Any = ModuleType(f"{__name__}.interpreter")
interpreter.record_builder = SimpleNamespace(reset=clear)
sys.modules[interpreter.__name__] = interpreter
