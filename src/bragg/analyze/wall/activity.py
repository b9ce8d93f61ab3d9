"""When the GPUs worked, and how much was launched: from the timeline, else from the curve that the recorder keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bragg.analyze.busy import busy_curve
from bragg.model import IdleKind, Profile, TrackKind
from bragg.model.meta.run import Run
from bragg.model.table import FloatArray

# What the recorder writes at most; more in a file is not a curve of it.
_MAX_BINS = 1 << 16


class Waited(NamedTuple):
    """Pauses of a device by why it waited, ns; in recordings of older versions the last two are in the second.

    Attributes:
        late_ns: Nothing was launched.
        started_ns: Work had just been launched, and did not run yet.
        full_queue_ns: From one piece of work to the next that was queued behind it.
        waited_ns: For another stream, a copy or an event.
    """

    late_ns: FloatArray
    started_ns: FloatArray
    full_queue_ns: FloatArray
    waited_ns: FloatArray


# Columns of the recorder's curve; the second holds the last two.
_PAUSES = ("late_ns", "queued_ns", "full_queue_ns", "waited_ns")


@dataclass(frozen=True, eq=False)
class Activity:
    """Work of all devices up to a time, linear between the times that are known.

    Attributes:
        time_ns: float64 [n_times], ascending, CLOCK_REALTIME.
        launches: float64 [n_times], work that had begun, ascending.
        busy: By device: times, ascending, and how long it had worked until then, ns.
        first_ns: The first work.
        last_ns: The end of the last.
        waited: By device: times, ascending, and until then its pauses in the columns that the recorder's curve has.
    """

    time_ns: FloatArray
    launches: FloatArray
    busy: Mapping[int, tuple[FloatArray, FloatArray]]
    first_ns: int
    last_ns: int
    waited: Mapping[int, tuple[FloatArray, ...]] = field(default_factory=dict)

    def n_launches(self, start_ns: float, end_ns: float) -> float:
        """Work that began in between."""
        before, after = np.interp([start_ns, end_ns], self.time_ns, self.launches, left=0.0)
        return float(after - before)

    def busy_ns(self, start_ns: float, end_ns: float) -> dict[int, float]:
        """How long each device worked in between."""
        return {
            device: float(np.diff(np.interp([start_ns, end_ns], time_ns, busy_ns, left=0.0))[0])
            for device, (time_ns, busy_ns) in self.busy.items()
        }

    def waited_until(self, device: int, moments_ns: NDArray[Any]) -> Waited | None:
        """The pauses of a device up to each moment, int64 or float64 [n_moments]; None: the recorder did not tell."""
        if device not in self.waited:
            return None
        time_ns, *columns = self.waited[device]
        late, queued, *parts = (np.interp(moments_ns, time_ns, column) for column in columns)
        full, waited = parts or (np.zeros(len(moments_ns)), np.zeros(len(moments_ns)))
        return Waited(late, queued - full - waited, full, waited)


def activity_of(profile: Profile) -> Activity | None:
    """What is known; None: nothing ran on a GPU, or only the sums were kept."""
    return _of_timeline(profile) or _of_curve(profile.run)


def _of_timeline(profile: Profile) -> Activity | None:
    tracks, slices = profile.tracks, profile.slices
    work = slices.take((tracks.kind == TrackKind.GPU_STREAM)[slices.track]) if len(slices) else slices
    if not len(work):
        return None
    work = work.take(np.argsort(work.start_ns, kind="stable"))
    device = tracks.device[work.track]
    busy = {
        int(number): (times.astype(np.float64), worked.astype(np.float64))
        for number in np.unique(device)
        for times, worked in [busy_curve(work.start_ns[device == number], work.duration_ns[device == number])]
    }
    return Activity(
        time_ns=work.start_ns.astype(np.float64),
        launches=np.arange(1, len(work) + 1, dtype=np.float64),
        busy=busy,
        first_ns=int(work.start_ns[0]),
        last_ns=int((work.start_ns + work.duration_ns).max()),
    )


def _of_curve(run: Run) -> Activity | None:
    """Of the curve in the facts of a file: by device, what was counted in bins of equal width."""
    told = run.gpu_activity
    if not isinstance(told, Mapping):
        return None
    last_ns = run.ended_ns if run.gpu_last_ns is None else run.gpu_last_ns
    names = [name for name in told if str(name).isdecimal() and len(str(name)) < 9]
    curves = {int(name): _bins(told[name], last_ns) for name in names}
    known = {device: curve for device, curve in curves.items() if curve is not None}
    if not known:
        return None
    edges = np.unique(np.concatenate([time_ns for time_ns, _, _ in known.values()]))
    launches = sum(
        (np.interp(edges, time_ns, count, left=0.0) for time_ns, _, count in known.values()), np.zeros(len(edges))
    )
    return Activity(
        time_ns=edges,
        launches=launches,
        busy={device: (time_ns, busy_ns) for device, (time_ns, busy_ns, _) in known.items()},
        first_ns=int(edges[0]),
        last_ns=int(edges[-1]) if last_ns is None else min(int(edges[-1]), last_ns),
        waited={device: found for device in known if (found := _waits(known[device][0], told.get(str(device))))},
    )


def knows_idle_classes(profile: Profile) -> bool:
    """Whether the recorder told apart why launched work did not run; older ones did not."""
    told = profile.run.gpu_activity
    curves = list(told.values()) if isinstance(told, Mapping) else []
    in_curves = any(isinstance(curve, Mapping) and set(_PAUSES) <= set(curve) for curve in curves)
    return in_curves or bool((profile.idle.kind >= IdleKind.WAITED).any())


def _waits(time_ns: FloatArray, told: Any) -> tuple[FloatArray, ...] | None:
    """Edges of the bins, and the pauses up to each; None: of an older recorder, or none."""
    if not isinstance(told, Mapping):
        return None
    columns: list[Any] = [told.get(name) for name in (_PAUSES if set(_PAUSES) <= set(told) else _PAUSES[:2])]
    if not all(_is_column(column) and len(column) == len(time_ns) - 1 for column in columns):
        return None
    return time_ns, *(np.append(0.0, np.cumsum(np.array(column, np.float64))) for column in columns)


def _bins(told: Any, last_ns: int | None) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Edges of the bins, the last of which ends with the work; busy time and launches up to each; None: there are none.

    Args:
        told: The curve of a device.
        last_ns: When the last work of any device ended; None: not known.
    """
    if not isinstance(told, Mapping):
        return None
    start_ns, bin_ns = told.get("start_ns"), told.get("bin_ns")
    columns = [told.get("busy_ns"), told.get("launches")]
    if not (_is_amount(start_ns) and _is_amount(bin_ns) and bin_ns):
        return None
    if not all(map(_is_column, columns)):
        return None
    busy_ns, launches = (np.append(0.0, np.cumsum(np.array(column, np.float64))) for column in columns)
    if len(busy_ns) != len(launches):
        return None
    edges = start_ns + bin_ns * np.arange(len(busy_ns), dtype=np.float64)
    if last_ns is not None and edges[-2] < last_ns < edges[-1]:
        edges[-1] = last_ns
    return edges, busy_ns, launches


def _is_column(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= _MAX_BINS and all(map(_is_amount, value))


def _is_amount(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
