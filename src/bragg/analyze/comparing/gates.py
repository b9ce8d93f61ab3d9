"""What a comparison may not exceed: the whole, a path, a kernel, a region, or every row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import NamedTuple

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.analyze.comparing.diff import are_alternating, in_turn, whole_of, with_waiting
from bragg.analyze.comparing.disturbance import may_be_starved, starved_share, taken_from
from bragg.analyze.comparing.repeats import FALSE_ALARMS, Spread, noise_of, spread_of
from bragg.analyze.comparing.step_units import are_alike, turn_time
from bragg.analyze.imports import imports_apart
from bragg.analyze.wall.step_times import step_times
from bragg.errors import UsageError
from bragg.grouping.regions import are_recorded, group_by_region
from bragg.model import FrameKind, FrameTable, MetricKind, Profile
from bragg.model.host_time import WAIT_TIME
from bragg.model.ids import ROOT, NodeId
from bragg.model.regroup import fold_specializations
from bragg.model.table import BoolArray, FloatArray
from bragg.model.transform import outermost, with_descendants

_STEP = "step"
_NAMES = "Names are those of bragg view; * stands for any characters: kernel:'*matmul*'"
_TELLING = 0.05
"""Of the value before: growth by more that noise may hide is not called passed, also where no growth is allowed."""
_LEAST_SHARE = 0.01
"""Of the whole: rows that grow by less never fail, unless a floor is given. Thousands of small rows vary more."""


class Gated(Enum):
    """What is judged."""

    TOTAL = "total"
    """The metric of the whole program."""
    WALL = "wall"
    """Wall time of the recording."""
    ROWS = "rows"
    """Each row of the comparison, and the whole."""
    PATH = "path"
    """The metric in and below all frames of a name."""
    KERNEL = "kernel"
    """The metric of all kernels of a name, specializations together."""
    REGION = "region"
    """Time of a step of training, or of a region in a step."""


@dataclass(frozen=True)
class Gate:
    """What is judged, its name if its kind has one, and what it may be at most: `kernel:matmul`, `step=30ms`.

    Attributes:
        what: What is judged.
        name: Its name; empty where its kind has none.
        at_most: What it may be after the change, as the user wrote it; empty: growth is judged.
    """

    what: Gated
    name: str = ""
    at_most: str = ""

    def __str__(self) -> str:
        is_step = self.what is Gated.REGION and self.name == _STEP
        what = _STEP if is_step else f"{self.what.value}:{self.name}" if self.name else self.what.value
        return f"{what}={self.at_most}" if self.at_most else what


@dataclass(frozen=True)
class Limit:
    """How much more is allowed. What is within noise is always allowed.

    Attributes:
        percent: Of the value before; growth by just that is allowed.
        floor: Growth up to this never fails, in the unit of the metric; None: a share of the whole for rows, else 0.
        at_most: What the value may be after the change, whatever it was before; None: growth is judged.
    """

    percent: float
    floor: float | None = None
    at_most: float | None = None

    def is_over(self, before: FloatArray, after: FloatArray, floor: float) -> BoolArray:
        """Whether values grew by more than the limit: [n]."""
        change = after - before
        # Not shares: 0.29 * 100 is less than 29.
        beyond: BoolArray = (100 * change > self.percent * before) & (
            change > (floor if self.floor is None else self.floor)
        )
        return beyond

    def is_exceeded(self, before: FloatArray, after: FloatArray, margin: FloatArray, floor: float) -> BoolArray:
        """Whether values grew by more than the limit, and by more than noise: [n]."""
        beyond: BoolArray = self.is_over(before, after, floor) & (after - before > margin)
        return beyond


@dataclass(frozen=True)
class Verdict:
    """What was found at one gate.

    Attributes:
        gate: What was judged.
        metric: The metric's name.
        unit: Its unit.
        before: Location of the runs before.
        after: Location of the runs after.
        margin: The interval of the change is this much to either side.
        confidence: Of that interval.
        n_exceeded: Rows over the limit; of what is not rows, 0 or 1.
        worst: Of rows, the node that grew most among those over the limit.
        is_undecided: It grew by more than the limit, and as much may be noise.
        calls_before: Calls that `before` is the mean of; 0: it is no mean.
        calls_after: The same after the change.
        is_one_run_each: Whether the margin is the noise that other programs have, as these runs show none.
        at_most: What `after` may be; None: growth was judged.
        taken: Left out of `before` and `after`, as other programs had the core meanwhile: at least that, means of runs.
    """

    gate: Gate
    metric: str
    unit: str
    before: float
    after: float
    margin: float
    confidence: float
    n_exceeded: int
    worst: NodeId = ROOT
    is_undecided: bool = False
    calls_before: int = 0
    calls_after: int = 0
    is_one_run_each: bool = False
    at_most: float | None = None
    taken: tuple[float, float] = (0.0, 0.0)


# Which frames have a name, as the user writes it: [n_frames].
Finder = Callable[[FrameTable, str], BoolArray]


def verdict_of(
    gate: Gate,
    before: Sequence[Profile],
    after: Sequence[Profile],
    metric: str,
    limit: Limit,
    find: Finder,
    n_gates: int,
) -> Verdict:
    """Judge two sets of runs.

    Args:
        gate: What to judge; not `ROWS`.
        before: Runs that count as normal.
        after: Runs to judge.
        metric: The metric of totals, paths and kernels.
        limit: What is allowed.
        find: Finds frames by name.
        n_gates: How many are judged together, with one rate of false alarms.

    Raises:
        UsageError: No run has what is judged.
    """
    if metric == WAIT_TIME:
        before, after = with_waiting(before), with_waiting(after)
    runs = in_turn(before, after)
    name, unit = _measured(gate, runs[-1], metric)
    found = _found(gate, runs, name, find)
    values = np.array([each.value for each in found], np.float64)
    is_whole = gate.what in (Gated.TOTAL, Gated.WALL) and limit.at_most is None
    taken = taken_from(runs, values, name) if is_whole else None
    noise = noise_of(name, unit, is_undisturbed=taken is not None)
    left = (values if taken is None else values - taken)[:, np.newaxis]
    spread = spread_of(left[: len(before)], left[len(before) :], noise, paired=are_alternating(before, after))
    false_alarms = FALSE_ALARMS / n_gates
    margin = spread.margin(false_alarms)
    is_exceeded, is_undecided = _judged(limit, spread, margin)
    value, changed, width = (float(column[0]) for column in (spread.before, spread.after, margin))
    if is_exceeded and limit.at_most is None and len(runs) == 2 and name == "region_time":
        is_undecided = may_be_starved(value, changed, max(starved_share(run.run) for run in runs))
        is_exceeded = not is_undecided
    return Verdict(
        gate,
        name,
        unit,
        value,
        changed,
        width,
        1 - 2 * false_alarms,
        int(is_exceeded),
        is_undecided=is_undecided,
        calls_before=sum(each.n_steps for each in found[: len(before)]),
        calls_after=sum(each.n_steps for each in found[len(before) :]),
        is_one_run_each=len(before) == len(after) == 1,
        at_most=limit.at_most,
        taken=(0.0, 0.0) if taken is None else (float(taken[: len(before)].mean()), float(taken[len(before) :].mean())),
    )


def _found(gate: Gate, runs: Sequence[Profile], metric: str, find: Finder) -> list[_Value]:
    """What each run has of what is judged.

    Raises:
        UsageError: None has any of it.
    """
    found = [_value(gate, run, metric, find) for run in runs]
    if not any(each.is_there for each in found):
        raise UsageError(
            f"no {gate.what.value} of these runs is named {gate.name!r}", hint=f"{_near(gate, runs[-1])}{_NAMES}"
        )
    return found


def _judged(limit: Limit, spread: Spread, margin: FloatArray) -> tuple[bool, bool]:
    """Whether a value grew by more than the limit and noise, and whether it grew by more than only the limit."""
    before, after = float(spread.before[0]), float(spread.after[0])
    if limit.at_most is not None:
        return after > limit.at_most, False
    if limit.is_exceeded(spread.before, spread.after, margin, 0.0)[0]:
        return True, False
    return False, bool(limit.is_over(spread.before, spread.after, 0.0)[0]) and after - before > _TELLING * before


def _near(gate: Gate, run: Profile) -> str:
    """A question whether the user meant a name of a run: the method of a class, or one that is written alike."""
    frames, is_of_kernel = run.tree.frames, gate.what is Gated.KERNEL
    rows = zip(frames.name, frames.kind.tolist(), strict=True)
    names = list(dict.fromkeys(name for name, kind in rows if name and (kind == FrameKind.KERNEL or not is_of_kernel)))
    methods = [name for name in names if name.endswith(f".{gate.name}")]
    near = next(iter(methods or get_close_matches(gate.name, names, n=1)), "")
    return f"Did you mean {gate.what.value}:{near}? " if near else ""


def total_verdict(before: Sequence[Profile], after: Sequence[Profile], metric: str) -> Verdict:
    """How a metric of whole programs changed, without the time in which other programs had the core."""
    return verdict_of(Gate(Gated.TOTAL), before, after, metric, Limit(0.0), named_nowhere, 1)


def step_verdict(before: Sequence[Profile], after: Sequence[Profile]) -> Verdict | None:
    """How the time of a step changed; None where a run has no steps of its own that were timed, or others."""
    runs = (*before, *after)
    try:
        timed = all(_step(run, "region_time").n_steps for run in runs) and are_alike(runs)
    except UsageError:
        return None
    gate = Gate(Gated.REGION, _STEP)
    return verdict_of(gate, before, after, "region_time", Limit(0.0), named_nowhere, 1) if timed else None


def named_nowhere(frames: FrameTable, _: str) -> BoolArray:
    """The `Finder` of gates that need none: [n_frames]."""
    return np.zeros(len(frames), np.bool_)


def _measured(gate: Gate, run: Profile, metric: str) -> tuple[str, str]:
    """Name and unit of what is compared at a gate."""
    if gate.what is Gated.WALL:
        return "wall_time", "ns"
    if gate.what is not Gated.REGION:
        return metric, run.metric(metric).unit
    is_step = gate.name == _STEP
    if is_step and turn_time(run):
        return "region_time", "ns"
    regions = group_by_region(run)
    for name in ("region_time", "gpu_time"):
        if name in regions.metrics and (is_step or are_recorded(regions, name)):
            return name, "ns"
    raise UsageError("the ends of steps were recorded, but no region", hint="Record with: bragg run --regions all")


class _Value(NamedTuple):
    """What a gate is about in one run.

    Attributes:
        value: Its value.
        is_there: Whether the run has it.
        n_steps: Steps that the value is the mean of; 0: it is no mean.
    """

    value: float
    is_there: bool = True
    n_steps: int = 0


def _value(gate: Gate, run: Profile, metric: str, find: Finder) -> _Value:
    if gate.what is Gated.WALL:
        return _Value(_wall_ns(run))
    if gate.what is Gated.TOTAL:
        return _Value(whole_of(imports_apart(run)[0], metric))
    if gate.what is Gated.REGION:
        return _step(run, metric) if gate.name == _STEP else _region(run, metric, gate.name)
    is_kernel = gate.what is Gated.KERNEL
    tree = (run := fold_specializations(run) if is_kernel else run).tree
    is_found = find(tree.frames, gate.name)[tree.frame]
    if is_kernel:
        is_found &= tree.kind == FrameKind.KERNEL
    if run.metric(metric).kind is MetricKind.EXCLUSIVE:
        return _Value(float(np.nansum(run.own(metric)[with_descendants(tree, is_found)])), bool(is_found.any()))
    return _Value(float(run.inclusive(metric)[outermost(tree, is_found)].sum()), bool(is_found.any()))


def _wall_ns(run: Profile) -> float:
    if run.run.duration_ns is None:
        raise UsageError("the file does not say how long its run took", hint="Gate the total instead: --gate total")
    return run.run.duration_ns


def _step(run: Profile, metric: str) -> _Value:
    """What a step took, as it is said everywhere; where only sums are known the mean, of all where none was counted."""
    times = step_times(run) if metric == "region_time" else None
    if times is not None:
        step_ns, n_steps = times.usual()
        return _Value(step_ns, n_steps=n_steps)
    if metric == "region_time" and (turn := turn_time(run)):
        return _Value(turn[0], n_steps=turn[1])
    regions = group_by_region(run)
    n_steps = _steps(regions)
    return _Value(regions.total(metric) / (n_steps or 1), n_steps=n_steps)


def _steps(regions: Profile) -> int:
    return int(regions.own("region_calls")[ROOT]) if "region_calls" in regions.metrics else 0


def _region(run: Profile, metric: str, name: str) -> _Value:
    """What a region took of a step, where the run counted them: two runs may make more steps or fewer."""
    regions = group_by_region(run)
    n_steps = _steps(regions)
    names = [regions.tree.frames.name[frame] for frame in regions.tree.frame]
    if name not in names[1:]:
        raise UsageError(f"unknown region {name!r}", hint=f"Choose one of: {', '.join([_STEP, *names[1:]])}")
    return _Value(float(regions.inclusive(metric)[names.index(name)]) / (n_steps or 1), n_steps=n_steps)


def rows_verdict(comparison: Comparison, limit: Limit, n_gates: int) -> Verdict:
    """Judge every row of a comparison and the whole; the rate of false alarms is that of all together.

    Args:
        comparison: The rows.
        limit: What is allowed.
        n_gates: How many gates are judged together.
    """
    nodes = np.append(0, comparison.rows)
    before, after = comparison.before[nodes], comparison.after[nodes]
    floor = _LEAST_SHARE * max(float(before[0]), 0.0)
    # Rows that are no larger cannot grow by more.
    n_tested = int((after > (floor if limit.floor is None else limit.floor)).sum())
    false_alarms = FALSE_ALARMS / n_gates / max(n_tested, 1)
    margin = comparison.spread.margin(false_alarms)
    beyond = nodes[limit.is_exceeded(before, after, margin[nodes], floor)]
    # The whole is named only when nothing in it is.
    ordered = beyond[np.lexsort((-comparison.change[beyond], beyond == 0))].tolist()
    worst = ordered[0] if ordered else ROOT
    value, changed, width = (float(column[worst]) for column in (comparison.before, comparison.after, margin))
    confidence = 1 - 2 * false_alarms
    metric, unit = comparison.metric, comparison.unit
    is_one_run_each = comparison.n_before == comparison.n_after == 1
    return Verdict(
        Gate(Gated.ROWS),
        metric,
        unit,
        value,
        changed,
        width,
        confidence,
        len(beyond),
        worst,
        is_one_run_each=is_one_run_each,
    )
