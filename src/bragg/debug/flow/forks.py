"""Programs that go different ways from one place, and are together again where the ways meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import BlockAsCondition, KernelFault
from bragg.debug.flow.aggregates import rebuilt
from bragg.debug.flow.merge import merged, narrowed
from bragg.debug.flow.ways import Site, site_of_caller
from bragg.debug.memory.provenance import is_constant
from bragg.debug.numbers.promotion import is_number
from bragg.debug.state import machine
from bragg.debug.values import MEANINGLESS, MISLED, SIGNAL, UNDEFINED, UNSET, Pointer, Tensor, bits_of, scalar
from bragg.model.table import Array

Values = tuple[Any, ...]
NOBODY: Array = np.zeros(0, np.intp)


def assigned(value: Any) -> Any:
    """What a plain assignment makes of a value: Python numbers become tensors of one value."""
    if is_number(value):
        return scalar(value)
    if isinstance(value, tuple):
        return rebuilt(value, [assigned(part) for part in value])
    return value


def is_anyone_left() -> bool:
    """A program has not returned yet."""
    return len(machine().rows) > 0


def truth(test: Any) -> bool | Array:
    """A condition: one truth for all active programs, or bool [active].

    Raises:
        BlockAsCondition: It is a block.
    """
    if isinstance(test, Pointer):
        return True
    if not isinstance(test, Tensor):
        return bool(test)
    if test.numel > 1:
        raise BlockAsCondition(
            f"the condition of an `if` or loop is a block of shape {list(test.shape)}, not one value",
            hint="Use tl.where, a mask, or a reduction such as tl.max",
        )
    if test.taint is not None:
        present = bits_of(test.taint)
        for bit in (*MEANINGLESS, MISLED):
            if present & bit:
                machine().tell_taint("condition", test.taint, bit)
        machine().tell_decision(test.taint, SIGNAL)
    holds = test.data.reshape(-1) != 0
    if holds.all():
        return True
    return holds if holds.any() else False


class Fork:
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
            now.rows = NOBODY
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


class Branch(Fork):
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
        self._is_compiled = isinstance(test, Tensor)
        self._names = names if self._is_compiled else ()
        self._partly = partly if self._is_compiled else ()
        self._gives_types = True in written
        self._site: Site | None = None

    def compare(self, what: str, first: Any, second: Any) -> None:
        """Refuse pointers of two types, of which each way takes one, also where all programs go the same way.

        Args:
            what: What the compiler says of them.
            first: The one, or a tuple of what it is the sum of.
            second: The other.

        Raises:
            KernelFault: Triton does not compile that.
        """
        is_sum = isinstance(first, tuple) or isinstance(second, tuple)  # Its shape is not known.
        first, second = _pointer_among(first), _pointer_among(second)
        if not self._is_compiled or first is None or second is None:
            return
        one, other = (_kind_text if is_sum else _type_text)(first), (_kind_text if is_sum else _type_text)(second)
        if one != other:
            raise KernelFault(f"{what}: {one} in one way, {other} in the other", hint="Give both ways one type")

    def promise(self, frame: Frame) -> None:
        """A way returns a value: so does the call, for programs that return none, too."""
        frame.gives_values |= self._is_compiled
        self._gives_types = True

    def then(self, values: Values) -> bool:
        """Go the first way with those whose test holds; False: nobody does."""
        self._entry = self.values = values
        one_way = self._test if isinstance(self._test, bool) else None
        question = machine().listeners.types
        if question is not None and self._is_compiled and self._gives_types:
            self._site = site_of_caller()
            question.went(self._site, one_way)
        if one_way is not None:
            return one_way
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
        question = machine().listeners.types
        for name, old, new, written in zip(self._names, self._entry, values, self._written, strict=False):
            if not written or old is new:
                continue
            before, after = _type_text(old), _type_text(new)
            if after and old is UNSET and question is not None and self._site is not None:
                question.gave(self._site, name, after)
            if before and after and before != after and not (question is not None and question.is_known()):
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


def _pointer_among(value: Any) -> Pointer | None:
    """A value, or the first of a tuple, that is a pointer."""
    values = value if isinstance(value, tuple) else (value,)
    return next((one for one in values if isinstance(one, Pointer)), None)


def _kind_text(pointer: Pointer) -> str:
    return f"{'constant ' * is_constant(pointer)}pointer<{pointer.element}>"


def _type_text(value: Any) -> str:
    """Type and shape of what a name holds; empty where that is not a tensor."""
    if isinstance(value, Pointer):
        return f"{_kind_text(value)}{list(value.shape)}"
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else ""


class Frame:
    """One call of a kernel or of a function that it calls.

    Attributes:
        gives_values: It returns one on some way: the compiler gives programs that go other ways an undefined one.
    """

    def __init__(self) -> None:
        self.gives_values = False
        self._entry_rows = machine().rows
        self._parts: list[tuple[Array, Any]] = []

    def give(self, value: Any) -> None:
        """The active programs return a value."""
        now = machine()
        if len(now.rows):
            self._parts.append((now.rows, value))
        now.rows = NOBODY

    def finish(self) -> Any:
        """The value for all programs of the call."""
        now = machine()
        if len(now.rows):
            self._parts.append((now.rows, None))
        now.rows = self._entry_rows
        if self.gives_values:
            values = [value for _, value in self._parts]
            self._parts = [(rows, _undefined(values) if value is None else value) for rows, value in self._parts]
        if len(self._parts) == 1:
            return self._parts[0][1]
        places = [(np.searchsorted(self._entry_rows, rows), value) for rows, value in self._parts]
        return merged(places, len(self._entry_rows))


def _undefined(values: Sequence[Any]) -> Any:
    """A value that must not be used, of the type of those that are given; of an integer where none is."""
    like: Any = next((value for value in values if value is not None), 0)
    if is_number(like):
        like = scalar(like)
    if isinstance(like, Pointer):
        return like.moved(_undefined([like.offset]))
    if not isinstance(like, Tensor):
        return None
    data = np.zeros((1, *like.shape), like.dtype.carrier)
    return Tensor(data, like.dtype).tainted(np.ones(data.shape, bool), UNDEFINED)


def chosen(
    test: Any, first: Callable[..., Any], second: Callable[..., Any], values: Sequence[Any], names: Sequence[Any] = ()
) -> Any:
    """`first if test else second`, each side evaluated for the programs that choose it.

    Args:
        test: The condition.
        first: Computes the one side.
        second: Computes the other.
        values: What both are called with.
        names: Both sides, where they are mere names.
    """
    branch = Branch(test, (True,))
    if names:
        branch.compare("Ternary expression with dynamic condition has inconsistent types", *names)
    if branch.then(tuple(values)):
        branch.done((first(*branch.values),))
    if branch.otherwise():
        branch.done((second(*branch.values),))
    return branch.join()[0]
