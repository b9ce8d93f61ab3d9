"""Loops of kernels: programs leave them one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bragg.debug.expressions import assigning_line
from bragg.debug.faults import KernelFault
from bragg.debug.flow.forks import NOBODY, Fork, assigned, truth
from bragg.debug.flow.merge import narrowed
from bragg.debug.flow.place import kernel_line
from bragg.debug.flow.ranges import KernelRange, StaticRange
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.promotion import common_type
from bragg.debug.state import machine
from bragg.debug.values import UNSET, Pointer, Tensor, scalar
from bragg.model.table import Array

Values = tuple[Any, ...]


class _Repetition(Fork):
    """A loop: programs leave it one after the other."""

    def __init__(self, written: tuple[bool, ...], names: tuple[str, ...]) -> None:
        super().__init__(written)
        self._names = names
        self._is_started = False
        self._is_compiled = True
        self._trip_rows = self._entry_rows
        self._local: list[int] = []
        self._waiting: list[tuple[Array, Values]] = []

    def broken(self, values: Values) -> None:
        """The active programs leave the loop."""
        _tell_of_jump("break")
        self._park(values)
        machine().rows = NOBODY

    def continued(self, values: Values) -> None:
        """The active programs wait for the next trip."""
        _tell_of_jump("continue")
        if len(machine().rows):
            self._waiting.append((machine().rows, values))
        machine().rows = NOBODY

    def returned(self) -> None:
        """The active programs return from within the loop, which only an unrolled one lets them."""
        if self._is_compiled:
            _tell_of_jump("return", " in a loop")

    def _rejoined(self, values: Values) -> Values:
        """The values of all programs that are still in the loop at the end of a trip."""
        if not self._waiting:
            return values
        trip = Fork(self._written)
        trip._entry_rows, trip._entry, trip._parts = self._trip_rows, self.values, self._waiting
        trip._park(values)
        self._waiting = []
        return trip.join()

    def _start(self, values: Values) -> Values:
        """Names that the loop changes hold tensors from the start, as Triton carries them."""
        self._is_started = True
        self._entry = values
        if self._is_compiled:
            values = tuple(assigned(v) if w else v for v, w in zip(values, self._written, strict=True))
            self._entry = values
            self._local = [k for k, value in enumerate(values) if value is UNSET]
        return values

    def _between_trips(self, values: Values) -> Values | None:
        """What the next trip begins with; None: nobody is left after the one before."""
        if not self._is_started:
            return self._start(values)
        machine().listeners.tell_step()
        values = self._without_local(self._rejoined(values))
        if not len(machine().rows):
            return None
        self._check_types(values)
        return values

    def _without_local(self, values: Values) -> Values:
        """Names that have their first value in the loop lose it at the end of a trip, and are none after the loop."""
        if not self._local:
            return values
        left = list(values)
        for k in self._local:
            left[k] = UNSET
        return tuple(left)

    def join(self) -> Values:
        """All programs together again."""
        return self._without_local(super().join())

    def _check_types(self, values: Values) -> None:
        """Raise a fault when a name has another type after a trip, which Triton does not compile."""
        if not self._is_compiled:
            return
        for name, old, new, written in zip(self._names, self._entry, values, self._written, strict=True):
            if not (written and isinstance(old, Tensor) and isinstance(new, Tensor)):
                continue
            if old.dtype is not new.dtype or old.shape != new.shape:
                fault = KernelFault(
                    f"{name} is {old.dtype}{list(old.shape)} before the loop and {new.dtype}{list(new.shape)} after"
                    " a trip: Triton does not compile a loop that changes a type",
                    hint=f"Give {name} its final type and shape before the loop",
                )
                file, line = kernel_line()
                fault.place("", file, assigning_line(file, line, name))
                raise fault

    def _leave(self, values: Values, stays: Array) -> Values:
        """Programs that do not stay leave the loop; gives the values of those that do."""
        rows = machine().rows
        leaving = np.flatnonzero(~stays)
        self._parts.append((rows[leaving], tuple(narrowed(value, leaving) for value in values)))
        return self._restrict(values, rows, np.flatnonzero(stays))


class Loop(_Repetition):
    """One `for`.

    Args:
        iterable: A range, or a sequence known at compile time.
        written: For each name, whether the loop changes it.
        target: Position of the loop's own name.
        names: All of them.
    """

    def __init__(self, iterable: Any, written: tuple[bool, ...], target: int, names: tuple[str, ...]) -> None:
        super().__init__(written, names)
        self._target = target
        self._dtype = DTYPES["int32"]
        self._trips: Iterator[Any] | None = None
        if isinstance(iterable, KernelRange):
            self._set_range(iterable)
        elif isinstance(iterable, StaticRange | tuple | list | range):
            if isinstance(iterable, tuple | list):
                _tell_of_sequence()
            self._is_compiled = False
            self._trips = iter(iterable)
        else:
            raise KernelFault(f"a kernel cannot loop over {iterable!r}", hint="Use range, tl.range or tl.static_range")

    def _set_range(self, given: KernelRange) -> None:
        limits = [as_tensor(limit) for limit in (given.start, given.end, given.step)]
        for limit in limits:
            if not limit.dtype.is_int() or limit.shape:
                raise KernelFault("the limits of a range are single integers")
            truth(limit)
        self._dtype = common_type(common_type(limits[0].dtype, limits[1].dtype), limits[2].dtype)
        if all((limit.data == limit.data[0]).all() for limit in limits):
            start, end, step = (int(limit.data[0]) for limit in limits)
            if step == 0:
                raise KernelFault("the step of a range is 0")
            self._trips = iter(range(start, end, step))
            return
        count = len(machine().rows)
        self._now, self._end, self._step = (np.broadcast_to(limit.data, count).astype(np.int64) for limit in limits)
        if (self._step == 0).any():
            raise KernelFault("the step of a range is 0")

    def more(self, values: Values) -> bool:
        """Begin the next trip; False: nobody has one left."""
        begun = self._between_trips(values)
        if begun is None:
            return False
        if self._trips is not None:
            self._trip_rows = machine().rows
            for number in self._trips:
                self.values = self._with_number(begun, scalar(number, self._dtype) if self._is_compiled else number)
                return True
            self._parts.append((machine().rows, begun))
            return False
        return self._more_apart(begun)

    def _more_apart(self, values: Values) -> bool:
        """Programs whose limits differ."""
        if len(self._now) != len(machine().rows):
            self._keep(np.searchsorted(self._trip_rows, machine().rows))
        goes_on = np.where(self._step > 0, self._now < self._end, self._now > self._end)
        if not goes_on.all():
            values = self._leave(values, goes_on)
            self._keep(np.flatnonzero(goes_on))
        if not len(self._now):
            return False
        number = self._now if (self._now != self._now[0]).any() else self._now[:1]
        self.values = self._with_number(values, Tensor(number.astype(self._dtype.carrier), self._dtype))
        self._now = self._now + self._step
        self._trip_rows = machine().rows
        return True

    def _keep(self, positions: Array) -> None:
        self._now, self._end, self._step = self._now[positions], self._end[positions], self._step[positions]

    def _with_number(self, values: Values, number: Any) -> Values:
        return (*values[: self._target], number, *values[self._target + 1 :])


class While(_Repetition):
    """One `while`."""

    def more(self, values: Values) -> bool:
        """Somebody may have a trip left."""
        is_first = not self._is_started
        begun = self._between_trips(values)
        if begun is None:
            return False
        if machine().turn is not None and not is_first:
            self._give_turn(begun)
        self.values = begun
        self._trip_rows = machine().rows
        return len(machine().rows) > 0

    def _give_turn(self, values: Values) -> None:
        """Let others run; a loop that changes its own names is not a mere wait."""
        now = machine()
        assert now.turn is not None
        pairs = zip(self.values, values, self._written, strict=True)
        now.moves += any(written and not _is_same(old, new) for old, new, written in pairs)
        now.turn()

    def goes_on(self, test: Any, values: Values) -> bool:
        """Those whose test holds begin a trip; False: nobody does."""
        self.values = values
        holds = truth(test)
        if holds is True:
            return True
        if holds is False:
            self._park(values)
            machine().rows = NOBODY
        else:
            self.values = self._leave(values, holds)
        self._trip_rows = machine().rows
        return holds is not False


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.data.shape == b.data.shape and bool((a.data == b.data).all()))
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return a.buffer is b.buffer and _is_same(a.offset, b.offset)
    return a is b


def _tell_of_jump(word: str, where: str = "") -> None:
    machine().listeners.tell_difference(
        f"Triton does not compile `{word}`{where}", "Let a mask or the condition of the loop decide who continues"
    )


def _tell_of_sequence() -> None:
    machine().listeners.tell_difference(
        "Triton does not compile a loop over a list or a tuple", "Use tl.static_range and index"
    )
