"""Values over time, and times of clocks other than the profile's, from the tables of a capture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.formats.captured.profile import resolve
from bragg.formats.captured.tables import CaptureTables
from bragg.model import CounterTable, TrackKind, TrackTable
from bragg.model.table import Int64Array


def counters_of(tables: CaptureTables, tracks: TrackTable) -> CounterTable:
    """The values whose track is known, in order of time."""
    is_counter = tracks.kind == TrackKind.COUNTER
    parts = [
        CounterTable(part["time_ns"], track, part["value"]).take(is_counter[track] & np.isfinite(part["value"]))
        for part in tables.counters
        for track in [resolve(part["track"], len(tracks))]
        if len(tracks)
    ]
    found = CounterTable.concatenate(parts)
    return found.take(np.argsort(found.time_ns, kind="stable"))


@dataclass(frozen=True, eq=False)
class Clock:
    """A clock that was read together with the profile's.

    Attributes:
        ticks: Its readings, ascending: int64 [n], at least one.
        time_ns: CLOCK_REALTIME at each of them.
    """

    ticks: Int64Array
    time_ns: Int64Array

    def to_ns(self, ticks: Int64Array) -> Int64Array:
        """CLOCK_REALTIME of readings, [n]: straight lines between those that are known, prolonged at both ends."""
        if len(self.ticks) == 1:
            moved: Int64Array = ticks - self.ticks[0] + self.time_ns[0]
            return moved
        before = np.clip(np.searchsorted(self.ticks, ticks, side="right") - 1, 0, len(self.ticks) - 2)
        rate = np.diff(self.time_ns)[before] / np.diff(self.ticks)[before]
        # Differences are small where times are not: these would lose their last digits as floating point numbers.
        with np.errstate(invalid="ignore"):  # of a damaged file
            since = np.rint((ticks - self.ticks[before]) * rate).astype(np.int64)
        result: Int64Array = self.time_ns[before] + since
        return result


def clocks_of(tables: CaptureTables) -> dict[int, Clock]:
    """The clocks by number. One that goes back, or with the profile's clock going back, keeps the readings before."""
    readings = {
        name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in tables.clocks)]).astype(np.int64)
        for name in ("clock", "ticks", "time_ns")
    }
    return {
        number: _clock(readings["ticks"][chosen], readings["time_ns"][chosen])
        for number in np.unique(readings["clock"]).tolist()
        for chosen in [readings["clock"] == number]
    }


def _clock(ticks: NDArray[np.int64], time_ns: NDArray[np.int64]) -> Clock:
    goes_on = ticks > np.maximum.accumulate(np.append(-1, ticks[:-1]))
    ticks, time_ns = ticks[goes_on], time_ns[goes_on]
    goes_on = time_ns >= np.maximum.accumulate(np.append(0, time_ns[:-1]))
    return Clock(ticks[goes_on], time_ns[goes_on])
