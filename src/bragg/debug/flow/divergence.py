"""What rewritten kernels call: programs part, run apart on compacted rows, and meet again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.faults import KernelFault
from bragg.debug.flow.aggregates import rebuilt
from bragg.debug.flow.closures import closed
from bragg.debug.flow.logic import combined, decides, negated, refused
from bragg.debug.flow.loops import KernelRange, StaticRange
from bragg.debug.flow.merge import merged, narrowed
from bragg.debug.language import asserted
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.promotion import common_type, is_number
from bragg.debug.state import machine
from bragg.debug.values import MEANINGLESS, MISLED, UNSET, Pointer, Tensor, scalar

__all__ = [
    "UNSET",
    "Branch",
    "Frame",
    "Loop",
    "While",
    "asserted",
    "assigned",
    "chosen",
    "closed",
    "combined",
    "decides",
    "is_anyone_left",
    "listed",
    "negated",
    "refused",
]

Array = npt.NDArray[Any]
Values = tuple[Any, ...]
_NOBODY: Array = np.zeros(0, np.intp)


def assigned(value: Any) -> Any:
    """What a plain assignment makes of a value: Python numbers become tensors of one value."""
    if is_number(value):
        return scalar(value)
    if isinstance(value, tuple):
        return rebuilt(value, [assigned(part) for part in value])
    return value


def listed(values: list[Any]) -> Values:
    """What a list is to Triton: a tuple."""
    return tuple(values)


def is_anyone_left() -> bool:
    """A program has not returned yet."""
    return len(machine().rows) > 0


def truth(test: Any) -> bool | Array:
    """A condition: one truth for all active programs, or bool [active].

    Raises:
        KernelFault: It is a block.
    """
    if isinstance(test, Pointer):
        return True
    if not isinstance(test, Tensor):
        return bool(test)
    if test.shape:
        raise KernelFault(
            f"the condition of an `if` or loop is a block of shape {list(test.shape)}, not one value",
            hint="Use tl.where, a mask, or a reduction such as tl.max",
        )
    for bit in (*MEANINGLESS, MISLED):
        machine().tell_taint("condition", test.taint, bit)
    holds = test.data != 0
    if holds.all():
        return True
    return holds if holds.any() else False


class _Fork:
    """Programs that go different ways from one place.

    Args:
        written: For each name, whether it may change on the way.
    """

    def __init__(self, written: tuple[bool, ...]) -> None:
        self.values: Values = ()
        self._written = written
        self._entry_rows = machine().rows
        self._entry: Values = ()
        self._parts: list[tuple[Array, Values]] = []

    def _park(self, values: Values) -> None:
        """Programs that reached the end of their way."""
        if len(machine().rows):
            self._parts.append((machine().rows, values))

    def _restrict(self, values: Values, rows: Array, positions: Array) -> Values:
        """Make some programs the active ones; `positions` are theirs among those that are active."""
        machine().rows = rows[positions]
        return tuple(narrowed(value, positions) for value in values)

    def join(self) -> Values:
        """All programs together again."""
        now = machine()
        if len(self._parts) == 1:
            now.rows, values = self._parts[0]
            return values
        if not self._parts:
            now.rows = _NOBODY
            return self._entry
        rows = np.sort(np.concatenate([rows for rows, _ in self._parts]))
        now.rows = rows
        if len(rows) == len(self._entry_rows):
            kept = self._entry
        else:
            places = np.searchsorted(self._entry_rows, rows)
            kept = tuple(narrowed(value, places) for value in self._entry)
        places_of = [np.searchsorted(rows, part) for part, _ in self._parts]
        return tuple(
            merged([(places, values[k]) for places, (_, values) in zip(places_of, self._parts, strict=True)], len(rows))
            if self._written[k]
            else kept[k]
            for k in range(len(self._written))
        )


class Branch(_Fork):
    """One `if`.

    Args:
        test: The condition.
        written: For each name, whether either way may change it.
        names: All of them.
        partly: Those that one way alone assigns: where they have no value before, they have none after.
    """

    def __init__(
        self, test: Any, written: tuple[bool, ...], names: tuple[str, ...] = (), partly: tuple[str, ...] = ()
    ) -> None:
        super().__init__(written)
        self._test = truth(test)
        is_compiled = isinstance(test, Tensor)
        self._names = names if is_compiled else ()
        self._partly = partly if is_compiled else ()

    def then(self, values: Values) -> bool:
        """Go the first way with those whose test holds; False: nobody does."""
        self._entry = self.values = values
        if isinstance(self._test, bool):
            return self._test
        self.values = self._restrict(values, self._entry_rows, np.flatnonzero(self._test))
        return True

    def join(self) -> Values:
        """All programs together again."""
        values = super().join()
        if not self._partly:
            return values
        kept = zip(self._names, self._entry, values, strict=True)
        return tuple(UNSET if old is UNSET and name in self._partly else value for name, old, value in kept)

    def done(self, values: Values) -> None:
        """A way ends."""
        if is_anyone_left():
            self._compare_types(values)
        self._park(values)

    def _compare_types(self, values: Values) -> None:
        """Tell of names that have another type after a way than before the `if`, which Triton does not compile."""
        for name, old, new, written in zip(self._names, self._entry, values, self._written, strict=False):
            if not written or old is new:
                continue
            before, after = _type_text(old), _type_text(new)
            if before and after and before != after:
                machine().listeners.tell_difference(
                    f"{name} is {before} before the `if` and {after} after it: Triton does not compile that",
                    f"Give {name} its final type and shape before the `if`",
                )

    def otherwise(self) -> bool:
        """Go the second way with the others; False: nobody does."""
        if isinstance(self._test, bool):
            self.values = self._entry
            return not self._test
        self.values = self._restrict(self._entry, self._entry_rows, np.flatnonzero(~self._test))
        return True


def _type_text(value: Any) -> str:
    """Type and shape of what a name holds; empty where that is no tensor."""
    if isinstance(value, Pointer):
        return f"pointer<{value.element}>{list(value.shape)}"
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else ""


class _Repetition(_Fork):
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
        machine().rows = _NOBODY

    def continued(self, values: Values) -> None:
        """The active programs wait for the next trip."""
        _tell_of_jump("continue")
        if len(machine().rows):
            self._waiting.append((machine().rows, values))
        machine().rows = _NOBODY

    def _rejoined(self, values: Values) -> Values:
        """The values of all programs that are still in the loop at the end of a trip."""
        if not self._waiting:
            return values
        trip = _Fork(self._written)
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
                raise KernelFault(
                    f"{name} is {old.dtype}{list(old.shape)} before the loop and {new.dtype}{list(new.shape)} after"
                    " a trip: Triton does not compile a loop that changes a type",
                    hint=f"Give {name} its final type and shape before the loop",
                )

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
        if not self._is_started:
            values = self._start(values)
        else:
            values = self._without_local(self._rejoined(values))
            if not len(machine().rows):
                return False
            self._check_types(values)
        if self._trips is not None:
            self._trip_rows = machine().rows
            for number in self._trips:
                self.values = self._with_number(values, scalar(number, self._dtype) if self._is_compiled else number)
                return True
            self._parts.append((machine().rows, values))
            return False
        return self._more_apart(values)

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
        if not self._is_started:
            values = self._start(values)
        else:
            values = self._without_local(self._rejoined(values))
            if not len(machine().rows):
                return False
            self._check_types(values)
            if machine().turn is not None:
                self._give_turn(values)
        self.values = values
        self._trip_rows = machine().rows
        return len(machine().rows) > 0

    def _give_turn(self, values: Values) -> None:
        """Let others run; a loop that changes its own names is no mere wait."""
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
        stays = np.zeros(len(machine().rows), bool) if holds is False else holds
        self.values = self._leave(values, np.asarray(stays))
        self._trip_rows = machine().rows
        return bool(np.any(stays))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.data.shape == b.data.shape and bool((a.data == b.data).all()))
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return a.buffer is b.buffer and _is_same(a.offset, b.offset)
    return a is b


class Frame:
    """One call of a kernel or of a function that it calls."""

    def __init__(self) -> None:
        self._entry_rows = machine().rows
        self._parts: list[tuple[Array, Any]] = []

    def give(self, value: Any) -> None:
        """The active programs return a value."""
        now = machine()
        if len(now.rows):
            self._parts.append((now.rows, value))
        now.rows = _NOBODY

    def finish(self) -> Any:
        """The value for all programs of the call."""
        now = machine()
        if len(now.rows):
            self._parts.append((now.rows, None))
        now.rows = self._entry_rows
        if len(self._parts) == 1:
            return self._parts[0][1]
        places = [(np.searchsorted(self._entry_rows, rows), value) for rows, value in self._parts]
        return merged(places, len(self._entry_rows))


def _tell_of_jump(word: str) -> None:
    machine().listeners.tell_difference(
        f"Triton does not compile `{word}`", "Let a mask or the condition of the loop say who goes on"
    )


def _tell_of_sequence() -> None:
    machine().listeners.tell_difference(
        "Triton does not compile a loop over a list or a tuple", "Use tl.static_range and index"
    )


def chosen(test: Any, first: Callable[..., Any], second: Callable[..., Any], values: Sequence[Any]) -> Any:
    """`first if test else second`, each side evaluated for the programs that choose it."""
    branch = Branch(test, (True,))
    if branch.then(tuple(values)):
        branch.done((first(*branch.values),))
    if branch.otherwise():
        branch.done((second(*branch.values),))
    return branch.join()[0]
