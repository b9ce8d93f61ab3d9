"""What a program that waits must have seen: the earliest value that ends its wait, not the one that it read.

Programs run one after the other, so that a wait often ends at once, at a value that came later than the one it waits
for. Whoever released in between need not have done so in another run. That goes for atomics that change nothing, as
`tl.atomic_add(counter, 0)` does; those that take a lock or a ticket are ordered by what they change.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

# Of programs, by the order of their first release, the last step that is known; -1: none. It never changes once it is
# made, so that a chain of programs that take one lock shares it. 2,000 programs on one lock: 16 MB, 1 us a release.
Known = npt.NDArray[np.int32]

# Changes of an element that are looked back at: who waits is late by few in most cases, and each takes 1 us.
_MOST_CHANGES = 256

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True)
class Test:
    """A comparison of what an atomic has returned with a number, and what came out."""

    name: str
    number: int
    outcome: bool

    @classmethod
    def of(cls, name: str, number: int, outcome: bool, *, is_swapped: bool) -> Test:
        """A comparison; swapped: the number stood on the left."""
        return cls(_SWAPPED.get(name, name) if is_swapped else name, number, outcome)

    def passes(self, value: int) -> bool:
        """Another value gives the same."""
        return _OPERATORS[self.name](value, self.number) is self.outcome


@dataclass(eq=False)
class Look:
    """What an atomic of one lane found at its element, and left there.

    Attributes:
        old: What it found.
        memory: Gives what is there now.
        new: What it left; None: no later atomic has told.
    """

    old: int
    memory: Callable[[], int]
    new: int | None = None

    @property
    def value(self) -> int:
        """What it left."""
        return self.memory() if self.new is None else self.new

    @property
    def changes_nothing(self) -> bool:
        """It only looked."""
        return self.value == self.old


@dataclass(eq=False)
class Change:
    """An element got a value.

    Attributes:
        look: The atomic; None: what was there first.
        first: That value.
        published: What is published there since.
        program: Whose atomic it is; -1: nobody's.
        step: When.
    """

    look: Look | None
    first: int
    published: Known
    program: int = -1
    step: int = -1

    @property
    def value(self) -> int:
        """What is there since."""
        return self.first if self.look is None else self.look.value


@dataclass(eq=False)
class Poll:
    """The last atomic of a program whose result may be compared.

    Attributes:
        look: The atomic.
        result: What the kernel got.
        tests: What it has compared it with.
        n_decided: By how many of them it has decided.
    """

    look: Look
    result: Any
    tests: list[Test] = field(default_factory=list)
    n_decided: int = 0


@dataclass(eq=False)
class AcquiringRead:
    """An atomic that acquired and changed nothing.

    Attributes:
        look: The atomic.
        address: Of the element.
        history: The changes of the element.
        index: Of the last one before it.
        published: What was published there.
        tests: By which comparisons of its result the program has decided.
    """

    look: Look
    address: int
    history: list[Change]
    index: int
    published: Known
    tests: tuple[Test, ...] = ()

    def is_next_trip(self, before: AcquiringRead | None, tests: tuple[Test, ...], program: int) -> bool:
        """The program waits on as it did before, which tells it nothing new: it has not changed the element itself."""
        if before is None or before.history is not self.history or before.tests != tests:
            return False
        return all(one.program != program for one in self.history[before.index + 1 : self.index + 1])

    def earliest(self, tests: tuple[Test, ...], at_least: int, is_known: Callable[[Change], bool]) -> int:
        """The first change that it may have read instead.

        Args:
            tests: What its value is compared with.
            at_least: The program has read this one before.
            is_known: The program knows of a change, and so reads none before it.
        """
        floor = max(at_least, self.index - _MOST_CHANGES, 0)
        for place in range(self.index, floor, -1):
            if is_known(self.history[place]):
                floor = place
                break
        for place in range(floor, self.index):
            value = self.history[place].value
            if all(test.passes(value) for test in tests):
                return place
        return self.index
