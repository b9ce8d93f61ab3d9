"""Digits that are lost: some programs are executed once more with float64 in the place of every float.

Where control flow depends on rounded values the two executions part; lines that have not been executed equally often in
both are left out, and so are kernels that look at the bits of their floats.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bragg.debug.checkers.again.replay import Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.expressions import casts_at
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.findings import program_ids
from bragg.debug.flow.place import kernel_line
from bragg.debug.host.launch import Launch
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.rounding import decode
from bragg.debug.state import Listeners, machine
from bragg.debug.values import Pointer, Tensor
from bragg.model import Severity
from bragg.model.table import Array

Place = tuple[str, int]

_FP64 = DTYPES["fp64"]
_MOST_PROGRAMS = 8
# Elements of all results that are kept: 128 MB.
_MOST_ELEMENTS = 1 << 24
# What is a loss: a thousandth, or a few roundings to the narrowest type that took part.
_LEAST_ERROR = 1e-3
_ROUNDINGS = 8
# Elements that are small beside the others of their block came about by a subtraction; its error is that of the others.
_SMALL = 0.05


@dataclass
class _Result:
    """What a line gave at one time.

    Attributes:
        values: The last floating result of the line.
        dtype: Its type.
        order: Number of this execution of a line among all of them.
        programs: Linear numbers of the programs.
        narrowest: The type of the line's results with the fewest bits after the point.
    """

    values: Array
    dtype: DType
    order: int
    programs: Array
    narrowest: DType


@dataclass
class _Trace:
    """The results of each line, one for each time that it was executed."""

    lines: dict[Place, list[_Result]] = field(default_factory=dict)
    executed: int = 0
    elements: int = 0
    last: Place | None = None

    def see(self, _operands: tuple[Any, ...], result: Tensor) -> None:
        if self.elements > _MOST_ELEMENTS:
            return
        here = kernel_line()
        entry = _Result(result.data, result.dtype, self.executed, machine().active_programs, result.dtype)
        results = self.lines.setdefault(here, [])
        if here == self.last:
            entry.narrowest = min(result.dtype, results[-1].narrowest, key=_digits)
            results[-1] = entry
        else:
            results.append(entry)
            self.executed += 1
            self.elements += result.data.size
        self.last = here


def _digits(dtype: DType) -> int:
    return dtype.fp_mantissa_width


@dataclass(frozen=True)
class _Loss:
    """The element that is farthest from what float64 gives."""

    place: Place
    dtype: DType
    narrowest: DType
    error: float
    program: int
    lane: int
    value: float
    exact: float


def _watch(record: LaunchFindings) -> Listeners:
    if record.launch.only is not None:
        return Listeners()
    replay = Replay(record.launch)
    return Listeners(access=[replay.see], end=[lambda: _compare(record, replay)])


def _compare(record: LaunchFindings, replay: Replay) -> None:
    launch = record.launch
    programs = np.unique(np.linspace(0, launch.programs - 1, min(_MOST_PROGRAMS, launch.programs)).astype(int)).tolist()
    own, wide = _Trace(), _Trace()

    def run_own(listeners: Listeners) -> None:
        listeners.result = (own.see,)
        launch.run_again(listeners, programs)

    def run_wide(listeners: Listeners) -> None:
        listeners.result = (wide.see,)
        listeners.is_wide = True
        launch.run_again(listeners, programs, _widened(launch))

    try:
        replay.differences(run_own)
        replay.differences(run_wide)
    except (KernelFault, Unsupported, TypeError, ValueError):
        return  # The kernel needs its own types.
    loss = _first_loss(own, wide)
    if loss is not None:
        _tell(record, loss)


def _widened(launch: Launch) -> dict[str, Any]:
    """What the kernel gets, with copies of float64 in the place of floats.

    Raises:
        Unsupported: Something in them has floats that cannot be replaced.
    """
    copies: dict[tuple[int, int], Array] = {}

    def wide(value: Any) -> Any:
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(map(wide, value))
        if isinstance(value, Tensor):
            is_narrow = value.dtype.is_floating() and value.dtype is not _FP64
            return Tensor(value.data.astype(np.float64), _FP64) if is_narrow else value
        if not isinstance(value, Pointer):
            if value is None or isinstance(value, bool | int | float | str | DType):
                return value
            raise Unsupported(f"{type(value).__name__} has no copy in float64")
        return _wide_pointer(value, copies) if value.element.is_floating() else value

    return {name: value if name in launch.constants else wide(value) for name, value in launch.values.items()}


def _wide_pointer(pointer: Pointer, copies: dict[tuple[int, int], Array]) -> Pointer:
    own = pointer.buffer
    key = own.flat.__array_interface__["data"][0], own.flat.nbytes
    if key not in copies:
        copies[key] = decode(own.flat, pointer.element).astype(np.float64)
    flat = copies[key]
    address = flat.__array_interface__["data"][0] + own.first * flat.itemsize
    buffer = Buffer(own.name, _FP64, flat, own.shape, own.strides, address, first=own.first, owner=flat)
    return Pointer(buffer, pointer.offset, _FP64)


def _first_loss(own: _Trace, wide: _Trace) -> _Loss | None:
    """The first line, in the order of execution, that is too far from float64."""
    pairs = [
        (mine, exact, place)
        for place, results in own.lines.items()
        if len(wide.lines.get(place, ())) == len(results)
        for mine, exact in zip(results, wide.lines[place], strict=True)
    ]
    narrowest = 52
    for mine, exact, place in sorted(pairs, key=lambda pair: pair[0].order):
        narrowest = min(narrowest, _digits(mine.narrowest))
        if mine.values.shape != exact.values.shape:
            continue
        loss = _loss(mine, exact, place)
        if loss.error > max(_LEAST_ERROR, _ROUNDINGS * 2.0 ** -(narrowest + 1)):
            return loss
    return None


def _loss(mine: _Result, exact: _Result, place: Place) -> _Loss:
    rows = len(mine.values)
    got, right = mine.values.reshape(rows, -1).astype(np.float64), exact.values.reshape(rows, -1)
    with np.errstate(all="ignore"):
        size = np.abs(right)
        known = np.where(np.isfinite(size), size, 0.0)
        scale = np.maximum(known, _SMALL * known.max(axis=1, keepdims=True))
        error = np.where(scale > 0, np.abs(got - right) / scale, 0.0)
    error = np.where(np.isfinite(got), error, np.inf)
    error = np.where(np.isfinite(right), error, 0.0)
    row, lane = divmod(int(np.argmax(error)), error.shape[1]) if error.size else (0, 0)
    programs = mine.programs
    program = int(programs[row if len(programs) == rows else 0])
    types = mine.dtype, mine.narrowest
    if not error.size:
        return _Loss(place, *types, 0.0, program, 0, 0.0, 0.0)
    return _Loss(place, *types, float(error[row, lane]), program, lane, float(got[row, lane]), right[row, lane])


def _tell(record: LaunchFindings, loss: _Loss) -> None:
    program = program_ids(loss.program, record.launch.grid)
    error = "no number is left" if not np.isfinite(loss.error) else f"relative error {loss.error:.2g}"
    types, fix = f"in {loss.dtype}", "Subtract before squaring, sum in tl.float32 or wider, or scale the operands"
    if _digits(loss.narrowest) < _digits(loss.dtype):
        casts = casts_at(*loss.place)
        what = ast.unparse(casts[0]) if len(casts) == 1 else "A value of this line"
        types = f"with {loss.narrowest} in this line"
        fix = f"{what} rounds to {loss.narrowest}: keep a wider type there if these digits matter"
    record.at_source(
        *loss.place,
        f"digits are lost here first: {types} the result is far from that of float64",
        fix,
        Severity.WARNING,
        example=f"program {program}, lane {loss.lane}: {loss.value:.6g} instead of {loss.exact:.6g}, {error}",
    )


PRECISION = Checker("precision", "statements where digits are lost, compared with float64", False, _watch)
