"""Pairs of launches of a kernel, one without clocks and one with them, timed by events of the driver."""

from __future__ import annotations

from statistics import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.instrument.driver import Driver


PAIRS = 5
"""The first one is not counted: code is loaded in it."""
# Plain, timed; timed, plain; and so on: a clock that rises or falls all along favours neither.
_IS_TIMED = (False, True, True, False)


class Trial:
    """Decides which of a kernel's launches have clocks, and what they cost.

    Args:
        driver: Makes the events.
        ready: Event after which launches with clocks may begin.
    """

    def __init__(self, driver: Driver, ready: int) -> None:
        self._driver = driver
        self._ready = ready
        self._times: list[tuple[int, int]] = []

    @property
    def is_full(self) -> bool:
        """Whether no further launch is needed."""
        return len(self._times) == 2 * PAIRS

    @property
    def is_idle(self) -> bool:
        """Whether the GPU is done with all launches that were made."""
        return all(self._driver.is_done(last) for _, last in self._times)

    @property
    def begun_pairs(self) -> int:
        """Pairs both of whose launches were made."""
        return len(self._times) // 2

    @property
    def done_pairs(self) -> int:
        """Pairs that the GPU is done with."""
        return sum(self._driver.is_done(last) for _, last in self._times) // 2

    def begin(self, stream: int) -> bool | None:
        """Begin a launch: with clocks or without; None: it is not measured."""
        if not self._times and not self._driver.is_done(self._ready):
            return None
        first, last = self._driver.event(), self._driver.event()
        self._driver.hold(stream)
        self._driver.record(first, stream)
        self._times.append((first, last))
        return _IS_TIMED[(len(self._times) - 1) % len(_IS_TIMED)]

    def end(self, stream: int) -> None:
        """End it."""
        self._driver.record(self._times[-1][1], stream)

    def times_ns(self, n_pairs: int) -> tuple[float, float]:
        """Time of a launch without and with clocks: medians over the pairs, without the first if there are more."""
        took = [self._driver.between_ns(*each) for each in self._times[: 2 * n_pairs]]
        plain: list[float] = []
        timed: list[float] = []
        for number in range(2 if n_pairs > 1 else 0, len(took)):
            (timed if _IS_TIMED[number % len(_IS_TIMED)] else plain).append(took[number])
        return median(plain), median(timed)
