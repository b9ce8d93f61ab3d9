"""The phases of a session: the captures that hold them until they are cleared, and several as one profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from bragg.errors import UsageError
from bragg.model import Profile, TrackTable
from bragg.model.merge import merge
from bragg.model.meta.gpu_memory import AT_PEAK, HELD, PEAKS, gpu_memory_of, jax_arrays_of, united_memory
from bragg.model.meta.nccl import united_nccl
from bragg.model.meta.telemetry import united
from bragg.record.captures import has_ended
from bragg.record.output import claim, phase_path

_OF_BEGIN = ("started_ns", "gpu_first_ns", "scheduled_before", "threads_before")
_SUMS = ("statistics", "gpu_busy_ns", "overhead")  # Tables of numbers in `meta` that add up over phases.


class Phases:
    """The captures of the phases of one session.

    Args:
        capture: That of phase 0.
        profile: Name of the session's profile.

    Attributes:
        current: Number of the phase that records.
    """

    def __init__(self, capture: Path, profile: Path) -> None:
        self.current = 0
        self._profile = profile
        self._captures = {0: capture}
        self._forgotten: list[Path] = []

    @property
    def kept(self) -> list[int]:
        """Numbers of the phases that were not cleared, in order; the current one is the last."""
        return list(self._captures)

    def claim_capture(self, phase: int) -> Path:
        """Reserve a file for a phase, beside the profile.

        Raises:
            OSError: It cannot be created.
        """
        path = phase_path(self._profile, phase)
        return claim(path.with_name(f"{path.name}.part"), set(), force=False)

    def begin(self, phase: int, capture: Path) -> None:
        """From now on this phase records, into this capture; what it had recorded before is forgotten."""
        if phase in self._captures:
            self._forgotten.append(self._captures[phase])
        self.current = phase
        self._captures[phase] = capture
        self.remove_forgotten()

    def capture(self, phase: int) -> Path:
        """The capture of a phase.

        Raises:
            UsageError: There is no such phase, or it was cleared.
        """
        self.check(phase)
        if phase not in self._captures:
            raise UsageError(f"phase {phase} was cleared")
        return self._captures[phase]

    def is_complete(self, phase: int) -> bool:
        """Whether a phase is over and everything it measured has come.

        Raises:
            UsageError: There is no such phase.
        """
        self.check(phase)
        return phase != self.current and (phase not in self._captures or has_ended(self._captures[phase]))

    def check(self, phase: int) -> None:
        """Refuse the number of a phase that there never was.

        Raises:
            UsageError: There is no such phase.
        """
        if not 0 <= phase <= self.current:
            raise UsageError(f"there is no phase {phase}: phase {self.current} is the latest")

    def drop(self, phase: int) -> None:
        """Forget a phase and remove its capture, if that is still there."""
        self._captures.pop(phase).unlink(missing_ok=True)

    def remove_forgotten(self, *, force: bool = False) -> None:
        """Remove the captures of what was forgotten, as soon as they are complete or at once with `force`."""
        for capture in list(self._forgotten):
            if force or has_ended(capture):
                capture.unlink(missing_ok=True)
                self._forgotten.remove(capture)


def unite(profiles: Iterable[Profile]) -> Profile | None:
    """The phases of one session as one recording: sums of their metrics, on the same tracks.

    None if there is no profile.
    """
    phases = list(profiles)
    if len(phases) < 2:
        return phases[0] if phases else None
    together = merge(_of_one_moment(phases))
    tracks, row = _distinct(together.tracks)
    return replace(
        together,
        meta=reduce(_one_recording, (phase.meta for phase in phases)),
        tracks=tracks,
        slices=together.slices.replace(track=row[together.slices.track]),
        counters=together.counters.replace(track=row[together.counters.track]),
    )


def _of_one_moment(phases: list[Profile]) -> list[Profile]:
    """The phases, of which one keeps who held memory at the peak, and the last one who holds it at the end."""
    highest = {
        metric: int(np.argmax([_peak_bytes(phase, table) for phase in phases])) for metric, table in PEAKS.items()
    }
    last = len(phases) - 1
    return [
        replace(
            phase,
            metrics={
                name: metric
                for name, metric in phase.metrics.items()
                if name not in HELD or number == highest.get(name, last)
            },
        )
        for number, phase in enumerate(phases)
    ]


def _peak_bytes(phase: Profile, table: str) -> int:
    told = gpu_memory_of(phase.meta, table)
    arrays = jax_arrays_of(phase.meta) if table == PEAKS[AT_PEAK] else None
    of_devices = sum(device.peak_bytes for device in told.devices) if told else 0
    return of_devices + (arrays.held_bytes if arrays else 0)


def _distinct(tracks: TrackTable) -> tuple[TrackTable, np.ndarray[Any, np.dtype[np.int32]]]:
    """The tracks without repetition, and the new row of each one."""
    columns = [getattr(tracks, name) for name in tracks.columns()]
    first: dict[tuple[Any, ...], int] = {}
    same = [first.setdefault(key, row) for row, key in enumerate(zip(*columns, strict=True))]
    rows, new_row = np.unique(np.array(same, np.int32), return_inverse=True)
    return tracks.take(rows), new_row.astype(np.int32)


def _one_recording(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Statistics of two consecutive phases as one: the beginning of the first, the end of the second, and sums."""
    sums: dict[str, Any] = {
        name: _sum(one.get(name, {}), other.get(name, {})) for name in _SUMS if name in one or name in other
    }
    begin: dict[str, Any] = {name: one[name] for name in _OF_BEGIN if name in one}
    known = {key: value for key, value in {**one, **other}.items() if key not in ("phase", "gpu_activity")}
    if "capture" in one and "capture" in other:
        known["capture"] = {**_sum(one["capture"], other["capture"]), "complete": _are_complete(one, other)}
    if isinstance(one.get("telemetry"), dict) and isinstance(other.get("telemetry"), dict):
        known["telemetry"] = united(one["telemetry"], other["telemetry"])
    for table in PEAKS.values():
        if isinstance(one.get(table), dict) and isinstance(other.get(table), dict):
            known[table] = united_memory(one[table], other[table])
    if isinstance(one.get("nccl"), dict) and isinstance(other.get("nccl"), dict):
        known["nccl"] = united_nccl(one["nccl"], other["nccl"])
    return {**known, **begin, **sums, "phases": one.get("phases", 1) + 1}


def _are_complete(*phases: dict[str, Any]) -> bool:
    return all(phase["capture"].get("complete") is not False for phase in phases)


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Sums of numbers; of anything else, such as the text of an error, the first."""
    both = {**other, **one}
    return {
        key: one[key] + other[key] if isinstance(value, int) and key in one and key in other else value
        for key, value in both.items()
    }
