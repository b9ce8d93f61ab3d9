"""When the regions and steps of a training program ran, while a timeline is recorded."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# 24 bytes each: 12 MB; of five regions a step, 100,000 steps.
_MAX_SPANS = 1 << 19


class RegionSpans:
    """Spans of regions by CLOCK_REALTIME, in the order of their ends; the caller locks.

    Args:
        names: Of all regions.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._timelines = 0
        self._left_out = 0
        self._columns = array("q"), array("q"), array("q")  # region, start, duration

    def begin(self) -> None:
        """One more timeline is recorded."""
        self._timelines += 1

    def end(self) -> None:
        """One timeline less; nothing is kept for none."""
        self._timelines -= 1
        if not self._timelines:
            self._left_out = 0
            for column in self._columns:
                del column[:]

    def add(self, name: str, start_ns: int, end_ns: int) -> None:
        """A region has ended."""
        if not self._timelines:
            return
        if len(self) >= _MAX_SPANS:
            self._left_out += 1
            return
        row = self._names.index(name), start_ns, max(end_ns - start_ns, 0)  # the clock may have been set back
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(self._columns[0])

    def since(self, number: int) -> dict[str, Any]:
        """The spans after the first `number`, as JSON; empty if there are none. Starts are differences."""
        region, start_ns, duration_ns = (column[number:].tolist() for column in self._columns)
        if not region:
            return {}
        steps = [now - before for now, before in zip(start_ns, [0, *start_ns[:-1]], strict=True)]
        return {
            "names": self._names,
            "region": region,
            "start_ns": steps,
            "duration_ns": duration_ns,
            "left_out": self._left_out,
        }
