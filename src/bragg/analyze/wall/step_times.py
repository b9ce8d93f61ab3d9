"""When the steps of a program ended: from its timeline, else from what the recorder kept of the first ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from bragg.analyze.wall.turns import turns_of
from bragg.grouping.regions import DECODING_STEP, LOOP, OPTIMIZER, REGIONS, step_function
from bragg.model import FrameKind, Profile, TrackKind
from bragg.model.facts import Facts
from bragg.model.meta.run import Run
from bragg.model.table import BoolArray, FloatArray, Int64Array

_STEP, _FORWARD = "step", "forward"
_OF_FUNCTION = "step of "
# A step that takes more than this many times the median is not a step of a steady state ...
_SLOW = 2.0
# ... which begins with so many steps in a row that are not slow.
_N_STEADY = 3
# What is taken for a step can be one of several calls of a step, unlike each other: as many together are equal again.
_MOST_TOGETHER = 8
# The mean is not the time of a usual step where the longest tenth take more than this share of the time.
_LONGEST, _OF_LONGEST = 0.1, 0.4
_MAX_KEPT = 1 << 16


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Steps, each from the end of the one before.

    Attributes:
        name: `step` or `decoding step`, the loop whose turns they are, or the function or region whose calls they are.
        began_ns: When the first step began, CLOCK_REALTIME; None: not known.
        ends_ns: int64 [n_known], ascending: ends of the first steps.
        count: All of them.
        last_ns: End of the last one.
    """

    name: str
    began_ns: int | None
    ends_ns: Int64Array
    count: int
    last_ns: int

    def n_slow(self) -> int | None:
        """How many steps came before the steady state; None: none is seen."""
        first_ns = np.inf if self.began_ns is None else float(self.ends_ns[0] - self.began_ns)
        duration_ns = np.append(first_ns, np.diff(self.ends_ns))
        for together in range(1, min(_MOST_TOGETHER, len(duration_ns) // _N_STEADY) + 1):
            whole = duration_ns[: len(duration_ns) // together * together].reshape(-1, together).sum(axis=1)
            n_slow = _n_slow(whole)
            if n_slow is not None:
                return n_slow * together
        return None

    def steady(self) -> tuple[float, int] | None:
        """The mean time of a step in the steady state, ns, and how many these are; None: none is seen."""
        n_slow = self.n_slow()
        if n_slow is None or (not n_slow and self.began_ns is None):
            return None
        begins_ns = int(self.ends_ns[n_slow - 1]) if n_slow else self.began_ns or 0
        return (self.last_ns - begins_ns) / (self.count - n_slow), self.count - n_slow

    def slow_ns(self) -> tuple[int, float]:
        """How many first steps `usual` leaves out, and how long those took whose begin is known, ns."""
        n_left_out = self.count - self.usual()[1]
        begins_ns = float(self.ends_ns[0]) if self.began_ns is None else float(self.began_ns)
        return n_left_out, float(self.ends_ns[n_left_out - 1]) - begins_ns if n_left_out else 0.0

    def usual(self) -> tuple[float, int]:
        """The same, or where no steady state is seen, of all steps but the first: what is said of a step everywhere."""
        return self.steady() or ((self.last_ns - int(self.ends_ns[0])) / (self.count - 1), self.count - 1)

    def uneven(self) -> tuple[float, float] | None:
        """Of the steps that `usual` counts the median, ns, and the share of the longest tenth; None: they are alike.

        They are not where some of them compile, or an evaluation or a checkpoint lies between two.
        """
        _, n_usual = self.usual()
        duration_ns = np.sort(np.diff(self.ends_ns)[max(self.count - n_usual - 1, 0) :])
        n_longest = int(_LONGEST * len(duration_ns))
        if not n_longest or not duration_ns.any():
            return None
        of_longest = float(duration_ns[-n_longest:].sum() / duration_ns.sum())
        return (float(np.median(duration_ns)), of_longest) if of_longest > _OF_LONGEST else None


def _n_slow(duration_ns: FloatArray) -> int | None:
    is_slow = duration_ns > _SLOW * np.median(duration_ns)
    for step in range(len(is_slow) - _N_STEADY + 1):
        if not is_slow[step : step + _N_STEADY].any():
            return step
    return None


def step_times(profile: Profile) -> StepTimes | None:
    """The steps of a program; None: it made fewer than two, or they are not known."""
    found = (_of_timeline(profile) if len(profile.slices) else None) or _of_meta(profile)
    return _in_turns(found, profile) if found is not None and found.count > 1 else None


def _in_turns(times: StepTimes, profile: Profile) -> StepTimes:
    """The steps by turns of the loop that calls their function several times in each; else as they are."""
    turns = turns_of(profile) if times.name == step_function(profile.meta) else None
    if turns is None or "host_count" not in profile.metrics:
        return times
    is_function = np.array([name == times.name for name in profile.tree.frames.name], np.bool_)[profile.tree.frame]
    n_calls = int(np.nansum(profile.own("host_count")[is_function & turns.is_inside]))
    each, left = divmod(n_calls, turns.count)
    ends_ns = times.ends_ns[each - 1 :: each] if each > 1 and not left else times.ends_ns[:0]
    if len(ends_ns) <= _N_STEADY:
        return times
    return StepTimes(f"{LOOP}{turns.place}", times.began_ns, ends_ns, times.count // each, times.last_ns)


def _of_timeline(profile: Profile) -> StepTimes | None:
    function = step_function(profile.meta)
    for name, is_wanted in _candidates(profile, function):
        start_ns, end_ns = _calls(profile, is_wanted)
        if len(end_ns) > 1:
            last_ns = int(end_ns[-1])
            if name == OPTIMIZER[0]:
                return StepTimes(_STEP, _began(profile.run, last_ns), end_ns, len(end_ns), last_ns)
            return _with_first(StepTimes(name, int(start_ns[0]), end_ns, len(end_ns), last_ns), profile.run)
    return None


def _candidates(profile: Profile, function: str) -> Iterator[tuple[str, BoolArray]]:
    """Names of what ends steps, best first, with the slices that do: [n_slices]."""
    names = profile.tree.frames.name
    is_marker = profile.tree.frames.kind == FrameKind.MARKER
    frame = profile.tree.frame[profile.slices.node]
    of_ranges = (profile.tracks.kind == TrackKind.RANGES)[profile.slices.track]

    def named(wanted: str) -> BoolArray:
        return np.array([name == wanted for name in names], np.bool_)

    yield _STEP, (named(_STEP) & is_marker)[frame] & of_ranges
    first = next((name for name in names if name.startswith(OPTIMIZER[0])), "")
    if first:
        yield OPTIMIZER[0], named(first)[frame] & ~of_ranges
    yield DECODING_STEP, (named(DECODING_STEP) & is_marker)[frame] & of_ranges
    if function:
        yield function, named(function)[frame] & ~of_ranges
    yield _FORWARD, (named(_FORWARD) & is_marker)[frame] & of_ranges


def _calls(profile: Profile, is_wanted: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Starts and ends of calls, without those inside of others."""
    slices = profile.slices.take(is_wanted)
    slices = slices.take(np.lexsort((-slices.duration_ns, slices.start_ns)))
    end_ns: NDArray[np.int64] = slices.start_ns + slices.duration_ns
    until_ns = np.maximum.accumulate(end_ns)
    is_outer = np.append(True, slices.start_ns[1:] >= until_ns[:-1])[: len(slices)]
    return slices.start_ns[is_outer], end_ns[is_outer]


def _began(run: Run, last_ns: int) -> int | None:
    """When the first step began, where its optimizer alone is in the timeline: steps follow each other."""
    total_ns = run.regions.table(_STEP).integer("total_ns")
    return last_ns - total_ns if _is_time(total_ns) and total_ns and not _are_ends_alone(run) else None


def _are_ends_alone(run: Run) -> bool:
    """Whether no region was recorded with which the first step could begin: what counts as it is the second one."""
    return _STEP in run.regions and not any(region in run.regions for region in REGIONS)


def _with_first(times: StepTimes, run: Run) -> StepTimes:
    """With the first step, where the recorder knows only when it ended."""
    if times.name != _STEP or times.began_ns is None or not _are_ends_alone(run):
        return times
    return replace(times, began_ns=None, ends_ns=np.append(times.began_ns, times.ends_ns), count=times.count + 1)


def _of_meta(profile: Profile) -> StepTimes | None:
    recorded = profile.run.regions
    function = step_function(profile.meta)
    keys = (_STEP, DECODING_STEP, *([_OF_FUNCTION + function] if function else []), _FORWARD)
    found = (_kept(key.removeprefix(_OF_FUNCTION), recorded.table(key)) for key in keys)
    return next((_with_first(times, profile.run) for times in found if times is not None), None)


def _kept(name: str, told: Facts) -> StepTimes | None:
    """What the recorder kept of the first steps, as `bragg.record.inside.first_calls` writes it; None: nothing."""
    kept = told.table("first_calls")
    began_ns, last_ns, count = kept.integer("began_ns"), kept.integer("last_ns"), told.integer("count")
    after_ns = kept.values().get("ends_after_ns")
    if not (_is_time(began_ns) and _is_time(last_ns) and _is_time(count)) or not isinstance(after_ns, list):
        return None
    if not after_ns:
        return None
    if len(after_ns) > min(count, _MAX_KEPT) or not all(map(_is_time, after_ns)) or after_ns != sorted(after_ns):
        return None
    if began_ns + after_ns[-1] > last_ns:
        return None
    return StepTimes(name, began_ns, began_ns + np.array(after_ns, np.int64), count, last_ns)


def first_call_ns(run: Run, region: str) -> tuple[int, int] | None:
    """When the first call of a region or the first step began, CLOCK_REALTIME, and how long it took; None: not known.

    Where only ends of steps were recorded, what counts as the first step is the second one.
    """
    kept = _kept(region, run.regions.table(region))
    return None if kept is None or kept.began_ns is None else (kept.began_ns, int(kept.ends_ns[0]) - kept.began_ns)


def _is_time(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 1 << 62
