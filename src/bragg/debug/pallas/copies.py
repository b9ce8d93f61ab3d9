"""Copies that run beside a Pallas kernel, and the semaphores that tell of their end.

A copy happens when it is waited for: what is read before that is not there yet, and what is overwritten is lost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from bragg.debug.faults import KernelFault
from bragg.debug.pallas.references import Whole


@dataclass(frozen=True)
class Copy:
    """A copy that was started.

    Attributes:
        equation: That starts it.
        target: Where it goes.
        finish: Does it.
    """

    equation: Any
    target: Whole
    finish: Callable[[], None]


class Copies:
    """The copies of a call that are under way, by their semaphores, and what other semaphores count.

    Attributes:
        counts: Of a semaphore.
    """

    def __init__(self) -> None:
        self.counts: defaultdict[Hashable, int] = defaultdict(int)
        self._under_way: defaultdict[Hashable, deque[Copy]] = defaultdict(deque)

    def start(self, semaphore: Hashable, copy: Copy) -> None:
        """A copy is under way."""
        self._under_way[semaphore].append(copy)

    def wait(self, semaphore: Hashable) -> None:
        """The first copy that was started with a semaphore is over.

        Raises:
            KernelFault: There is none.
        """
        if not self._under_way[semaphore]:
            raise KernelFault(
                "deadlock: a copy is waited for that was not started", hint="Start it first, with the same semaphore"
            )
        self._under_way[semaphore].popleft().finish()

    def wait_for_count(self, semaphore: Hashable, count: int, *, takes: bool) -> None:
        """A semaphore has counted so far; `takes`: it counts that many less from here on.

        Raises:
            KernelFault: It has not, and programs run one after the other.
        """
        if self.counts[semaphore] < count:
            raise KernelFault(
                f"deadlock: a semaphore is waited for until it counts {count}, and it counts {self.counts[semaphore]}",
                hint="Signal it first",
            )
        self.counts[semaphore] -= count * takes

    def left(self) -> Iterator[Copy]:
        """Those that nobody has waited for."""
        for copies in self._under_way.values():
            yield from copies
