"""The parts of a run's wall time: start, warm-up, steady state and teardown.

Where the steps of a program are known, the steady state begins after the slow first ones. Elsewhere it is the stretch
in which work of the GPUs began at about one rate: what compiles, tunes and plans launches little meanwhile. Its steps
are then the turns of a loop, if the program's text and counts tell one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bragg.analyze.wall.activity import Activity, activity_of
from bragg.analyze.wall.step_times import StepTimes, step_times
from bragg.analyze.wall.turns import LEAST_TURNS, turns_of
from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.grouping.regions import LOOP
from bragg.model import FrameKind, Profile
from bragg.model.meta.overhead import Overhead, overhead_of, overhead_within
from bragg.model.meta.run import Run
from bragg.model.table import Int64Array

# A pause is part of the steady state where the launches around it make up for it at this share of its rate ...
_LEAST_RATE = 0.25
# ... and the first launch of a kernel where it is followed by so many launches, in launches for each kernel of the run.
_NEW_KERNEL = 0.5
_MAX_ROUNDS = 20
# Work that is repeated: so many launches for each kernel.
_REPEATED = 10
# Of the GPUs' time: less after the steady state is what a program does to end.
_LITTLE = 0.02
# GPUs work off what was launched before the last step ended: without a pause of this share of a step, at the rate of
# the steps, give or take this much. At another rate for longer than this share of the steps, they do something else.
_PAUSE = 0.5
_SAME_RATE = 0.2
_BACKLOG = 0.5
# A turn lacks so much of itself where launches are counted at the end of a bin; more launches than those of all turns
# by this share are not of the loop.
_NEARLY = 0.1
_BESIDE = 1.05
# Of the overhead of the run: then the steady state has one of its own. It is estimated where it is this part of the
# run's work: elsewhere other calls decide what a call costs on average, and the first ones cost more.
_OF_ITS_OWN = 1.3
_LEAST_PART = 1 / 3


def wall_parts(profile: Profile) -> WallParts | None:
    """The parts of one process's run; None: no GPU worked, it is not known when, or several processes were recorded."""
    run = profile.run
    began, ended = run.started_ns, run.ended_ns
    several = run.is_merged or len(set(profile.tracks.unique_process.tolist())) > 1
    if several or began is None or ended is None:
        return None
    activity = activity_of(profile)
    worked, rested = _gpu_span(run, activity)
    if not began <= worked <= rested <= ended:
        return None
    if activity is None:
        return WallParts(began, worked, rested, ended, None)
    steps = step_times(profile)
    steady = _of_steps(steps, activity) if steps else _in_turns(_of_rate(profile, activity), profile, activity)
    if steady is None or not began <= steady.begins_ns < steady.ends_ns <= ended:
        return WallParts(began, worked, rested, ended, None)
    first_ns = worked if steps is None or steps.began_ns is None else steps.began_ns
    worked = max(began, min(first_ns, steady.begins_ns))
    steady = replace(steady, overhead=_overhead(profile.meta, activity, steady))
    return WallParts(began, worked, steady.ends_ns, ended, steady, _works_after(activity, steady))


def _gpu_span(run: Run, activity: Activity | None) -> tuple[int, int]:
    first, last = run.gpu_first_ns, run.gpu_last_ns
    if first is not None and last is not None and 0 < first <= last:
        return first, last
    return (activity.first_ns, activity.last_ns) if activity else (0, -1)


def _of_steps(steps: StepTimes, activity: Activity) -> Steady | None:
    n_slow = steps.n_slow()
    if n_slow is None:
        return None
    begins = int(steps.ends_ns[n_slow - 1]) if n_slow or steps.began_ns is None else steps.began_ns
    n_steps = steps.count - n_slow
    ends = _worked_off(activity, begins, steps.last_ns, n_steps)
    return _steady(activity, begins, ends, n_steps, steps.name)


def _worked_off(activity: Activity, begins_ns: int, last_ns: int, n_steps: int) -> int:
    """When the GPUs had done what was launched up to the end of the last step: at their first pause.

    A host that does not wait is ahead of the GPU by a full queue: of CUDA's 1,024 launches and more of small kernels,
    which take a GPU longer than the host needs for all of its steps.
    """
    step_ns = max(last_ns - begins_ns, *activity.busy_ns(begins_ns, activity.last_ns).values()) / n_steps
    until_ns = float(last_ns)
    while until_ns < activity.last_ns and _is_busy(activity, until_ns, until_ns + step_ns):
        until_ns += step_ns
    if not _is_same_rate(activity, begins_ns, last_ns, min(until_ns, activity.last_ns)):
        until_ns = min(until_ns, last_ns + _BACKLOG * (last_ns - begins_ns))
    return max(last_ns, min(int(until_ns), activity.last_ns))


def _is_busy(activity: Activity, start_ns: float, end_ns: float) -> bool:
    return max(activity.busy_ns(start_ns, end_ns).values()) > _PAUSE * (end_ns - start_ns)


def _is_same_rate(activity: Activity, begins_ns: float, last_ns: float, until_ns: float) -> bool:
    """Whether work begins as often after the last step as up to its end."""
    during, after = (
        activity.n_launches(start_ns, end_ns) / max(end_ns - start_ns, 1)
        for start_ns, end_ns in ((begins_ns, last_ns), (last_ns, until_ns))
    )
    return abs(after - during) < _SAME_RATE * during


def _of_rate(profile: Profile, activity: Activity) -> Steady | None:
    """The stretch with most launches beyond what its own rate, and the kernels that are new in it, take away."""
    time_ns, launches, first_ns = activity.time_ns, activity.launches, _first_launches(profile)
    n_launches = float(launches[-1] - launches[0])
    if len(time_ns) < 2 or time_ns[-1] <= time_ns[0] or n_launches < _REPEATED * max(len(first_ns), 1):
        return None
    n_seen = np.searchsorted(first_ns, time_ns, side="left")
    known = launches - _NEW_KERNEL * n_launches / max(len(first_ns), 1) * n_seen
    rate, found = n_launches / float(time_ns[-1] - time_ns[0]), (0, 0)
    for _ in range(_MAX_ROUNDS):
        excess = known - _LEAST_RATE * rate * (time_ns - time_ns[0])
        last = int((excess - np.minimum.accumulate(excess)).argmax())
        first = int(excess[: last + 1].argmin())
        if (first, last) == found or first == last:
            break
        found = first, last
        rate = float(launches[last] - launches[first]) / float(time_ns[last] - time_ns[first])
    first, last = found
    if launches[last] - launches[first] < _REPEATED * max(len(first_ns), 1):
        return None
    ends = activity.last_ns if last == len(time_ns) - 1 else int(time_ns[last])
    return _steady(activity, int(time_ns[first]), ends, 0, "")


def _in_turns(steady: Steady | None, profile: Profile, activity: Activity) -> Steady | None:
    """The whole turns of a loop in a steady state, up to its end; as it is, where none are sure."""
    turns = turns_of(profile) if steady else None
    if steady is None or turns is None or not turns.launches:
        return steady
    fits = steady.n_launches / turns.launches
    count = min(int(fits + _NEARLY), turns.count)
    if count < LEAST_TURNS or fits > _BESIDE * turns.count:
        return steady
    begins_ns = steady.ends_ns - int(count / fits * steady.duration_ns)
    return _steady(activity, begins_ns, steady.ends_ns, count, f"{LOOP}{turns.place}")


def _first_launches(profile: Profile) -> Int64Array:
    """When each kernel first ran: ascending."""
    tree, durations = profile.tree, profile.durations
    if len(durations):
        frame, start_ns = durations.frame, durations.first_ns
    else:
        slices = profile.slices.take((tree.kind == FrameKind.KERNEL)[profile.slices.node])
        frame, start_ns = tree.frame[slices.node], slices.start_ns
    first_ns = np.full(len(tree.frames), np.iinfo(np.int64).max)
    np.minimum.at(first_ns, frame, start_ns)
    ordered: Int64Array = np.sort(first_ns[first_ns < np.iinfo(np.int64).max])
    return ordered


def _steady(activity: Activity, begins_ns: int, ends_ns: int, n_steps: int, step_of: str) -> Steady:
    busy = {
        device: min(busy_ns / (ends_ns - begins_ns), 1.0) if ends_ns > begins_ns else 0.0
        for device, busy_ns in activity.busy_ns(begins_ns, ends_ns).items()
    }
    n_launches = round(activity.n_launches(begins_ns, ends_ns))
    return Steady(begins_ns, ends_ns, n_steps, step_of, n_launches, busy)


def _overhead(meta: Mapping[str, Any], activity: Activity, steady: Steady) -> Overhead | None:
    of_all = activity.n_launches(activity.first_ns, activity.last_ns + 1)
    whole = overhead_of(meta)
    if whole is None or not of_all or steady.duration_ns < _LEAST_PART * whole.work_ns:
        return None
    busy_ns = max(steady.busy.values(), default=0.0) * steady.duration_ns
    found = overhead_within(meta, min(steady.n_launches / of_all, 1.0), steady.duration_ns, busy_ns)
    return found if found is not None and found.slowdown > _OF_ITS_OWN * whole.slowdown else None


def _works_after(activity: Activity, steady: Steady) -> bool:
    """Whether GPUs still did something worth a name when the steady state had ended."""
    after, of_all = (
        sum(activity.busy_ns(start_ns, activity.last_ns).values()) for start_ns in (steady.ends_ns, activity.first_ns)
    )
    return after > _LITTLE * of_all
