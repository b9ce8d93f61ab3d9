"""The time of each region of a training program: data, forward, backward, optimizer; and of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from bragg.errors import UsageError
from bragg.grouping.compiled_regions import COMPILED_REGION
from bragg.grouping.hlo_names import CALLS, COMPILE
from bragg.model.durations import MAX_BUCKET, DurationTable
from bragg.model.facts import Facts
from bragg.model.meta.run import Run
from bragg.model.meta.telemetry import METERED
from bragg.model.metric import Combine, Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.table import BoolArray, Int64Array
from bragg.model.transform import innermost, with_descendants
from bragg.model.tree import CallTree, FrameKind, FrameTable

REGIONS = ("data", "forward", "backward", "optimizer")
_STEP = "step"
DECODING_STEP = "decoding step"
"""As the recorder calls a turn of the loop in which a language model generates."""
LOOP = "loop at "
"""Before the place of a loop whose turns are the steps."""
_STEP_OF = "step of "  # before the name of a function whose calls may be the steps
_OTHER = "other"

BACKWARD = "[backward"
ACCUMULATION = "autograd::engine::evaluate_function: "
"""Gradients of parameters are added up outside of the operators that they come from."""
_SCOPE = "torch: "
BACKWARD_REGION = f"{_SCOPE}backward"
OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")
_OF_OPERATORS = {
    "data": ("enumerate(DataLoader)#",),
    "forward": CALLS,  # what of it is not differentiated
    "backward": (BACKWARD, ACCUMULATION),
    "optimizer": OPTIMIZER,
}
_N_REPEATED = 5
_QUANTILES = {"region_time_p50": 0.5, "region_time_p95": 0.95}


@dataclass(frozen=True, eq=False)
class _Times:
    """Recorded calls and times of one region, or of steps.

    Attributes:
        count: How often it was entered.
        total_ns: In all.
        in_steps_ns: In steps that were completed.
        durations: Of the calls, as a histogram of frame 0.
    """

    count: int
    total_ns: int
    in_steps_ns: int
    durations: DurationTable

    @classmethod
    def read(cls, facts: Facts) -> _Times | None:
        """From the facts of a file; None when they are none."""
        numbers = [facts.integer(key) for key in ("count", "total_ns", "in_steps_ns")]
        amounts = [number for number in numbers if _is_amount(number)]
        if len(amounts) < len(numbers) or not facts.is_table("buckets"):
            return None
        buckets = facts.table("buckets")
        rows = [
            (int(bucket), times)
            for bucket in buckets
            if _is_amount(times := buckets.integer(bucket)) and bucket.isdecimal() and int(bucket) <= MAX_BUCKET
        ]
        bucket, counts = np.array(rows, np.int64).reshape(-1, 2).T
        zeros = np.zeros(len(rows), np.int64)
        durations = DurationTable(zeros.astype(np.int32), bucket.astype(np.int32), counts, zeros)
        return cls(amounts[0], amounts[1], amounts[2], durations)

    def quantile(self, q: float) -> float:
        return float(self.durations.quantiles(q, 1)[0])


def _is_amount(value: int | None) -> TypeGuard[int]:
    return value is not None and 0 <= value < 1 << 63


def group_by_region(profile: Profile) -> Profile:
    """The regions of a program as one row each, and what is in none of them.

    The metrics are `region_time` (of the thread that trains, in its completed steps, if it made any), `region_calls`,
    the average and quantiles of a call, and of the whole run `gpu_time` and what telemetry says of it. Those of the
    root are the steps'.

    Raises:
        UsageError: No region was recorded.
    """
    times = _times_of(profile.meta)
    region = _region_of_nodes(profile)
    gpu = [profile.metrics[name] for name in ("gpu_time", "gpu_count", *METERED) if name in profile.metrics]
    if not times and not (gpu and (region >= 0).any()):
        raise UsageError("no region of a training program was recorded", hint="Record with: bragg run --regions all")
    gpu_metrics = [_by_region(metric, region) for metric in gpu]
    time_metrics = _time_metrics(times) if times else []
    # Rows are shown by the first one: regions that were not asked for have GPU time alone.
    is_hidden = bool(gpu and times) and bool((gpu_metrics[0].own[1:-1] > 0)[time_metrics[0].own[1:-1] == 0].any())
    metrics = [*gpu_metrics, *time_metrics] if is_hidden else [*time_metrics, *gpu_metrics]
    return Profile(profile.meta, _tree(), {metric.name: metric for metric in metrics})


def are_recorded(regions: Profile, metric: str = "region_time") -> bool:
    """Whether a table of `group_by_region` has times of regions, and not those of steps alone."""
    return metric in regions.metrics and bool(regions.own(metric)[1:-1].any())


def step_function(meta: Mapping[str, Any]) -> str:
    """The function whose calls are the steps: of those that are called again and again the one that took most time.

    The time of the longest call, which compiled, is left out. Functions that were called a few times, as those that
    make parameters of several shapes, may have compiled each time: no call counts for longer than the median step.

    Args:
        meta: Of a profile.

    Returns:
        Its name; empty when optimizers or turns of `generate` end the steps, or nothing does.
    """
    recorded = Run(meta).regions
    if _STEP in recorded or DECODING_STEP in recorded:
        return ""
    called = [
        (*_called(facts, called_ns), name.removeprefix(_STEP_OF))
        for name, facts in recorded.tables().items()
        if name.startswith(_STEP_OF) and _is_amount(called_ns := facts.integer("called_ns"))
    ]
    return max(called, default=(False, 0.0, ""))[2]


def step_noun(step_of: str) -> str:
    """What to call a step, by what steps are: `step`, `decoding step`, or the name of a function."""
    return DECODING_STEP if step_of == DECODING_STEP else _STEP


def step_source(step_of: str) -> str:
    """What steps are, after how many there are: `, calls of jit(f)`; empty where their name tells it."""
    if step_of.startswith(LOOP):
        return f", turns of the {step_of}"
    return "" if step_of == step_noun(step_of) else f", calls of {step_of}"


def _called(facts: Facts, called_ns: int) -> tuple[bool, float]:
    """Whether a function was called again and again, and the time in its calls."""
    times = _Times.read(facts)
    if times is None or not len(times.durations):
        return False, float(called_ns)
    return times.count >= _N_REPEATED, min(float(called_ns), times.count * times.quantile(0.5))


def _times_of(meta: Mapping[str, Any]) -> dict[str, _Times]:
    """Times of regions and steps, as far as they can be read."""
    recorded = Run(meta).regions
    function = step_function(meta)
    names = {**{name: name for name in (_STEP, *REGIONS)}, **({_STEP: _STEP_OF + function} if function else {})}
    found = {name: _Times.read(recorded.table(key)) for name, key in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _time_metrics(times: Mapping[str, _Times]) -> list[Metric]:
    """Over the root, which is a step, the regions, and the rest."""
    steps = times.get(_STEP)
    rows = [steps, *(times.get(name) for name in REGIONS), None]
    own_ns = np.array([0 if row is None else row.in_steps_ns if steps else row.total_ns for row in rows])
    own_ns[-1] = max(steps.total_ns - own_ns[1:].sum(), 0) if steps else 0
    own_ns[0] = 0
    count = np.array([0 if row is None else row.count for row in rows])
    total_ns = np.array([0 if row is None else row.total_ns for row in rows], np.float64)
    mean = np.divide(total_ns, count, out=np.full(len(rows), np.nan), where=count > 0)
    quantiles = {
        name: np.array([np.nan if row is None else row.quantile(q) for row in rows]) for name, q in _QUANTILES.items()
    }
    return [
        Metric("region_time", "ns", MetricKind.INCLUSIVE, own_ns),
        Metric("region_calls", "1", MetricKind.EXCLUSIVE, count),
        *(_property(name, values) for name, values in {"region_time_mean": mean, **quantiles}.items()),
    ]


def _property(name: str, values: NDArray[np.float64]) -> Metric:
    return Metric(name, "ns", MetricKind.PROPERTY, values, Combine.MAX)


def _by_region(metric: Metric, region: Int64Array) -> Metric:
    """A metric that adds up, over the root, the regions and the rest."""
    own = np.zeros(len(REGIONS) + 2, metric.own.dtype)
    np.add.at(own, np.where(region < 0, len(REGIONS), region) + 1, metric.own)
    return Metric(metric.name, metric.unit, metric.kind, own)


def _region_of_nodes(profile: Profile) -> Int64Array:
    """The innermost region that each node is in, as an index of `REGIONS`; -1: none."""
    tree, described = profile.tree, profile.run.attributes
    frames = zip(tree.frames.kind.tolist(), tree.frames.name, strict=True)
    begun = np.array([_region_of(kind, name, "module" in described.get(name, {})) for kind, name in frames], np.int64)
    mark = begun[tree.frame]
    forward = REGIONS.index("forward")
    # Modules and jitted functions that are computed again belong to the backward pass.
    in_backward = with_descendants(tree, mark == REGIONS.index("backward"))
    mark[in_backward & (mark == forward)] = -1
    region = innermost(tree, mark)
    # Compiled code calls no modules; what it computes outside of every region is a function of the program's model.
    is_compiled = np.array([name.startswith(COMPILED_REGION) for name in tree.frames.name], np.bool_)[tree.frame]
    region = np.where((region < 0) & with_descendants(tree, is_compiled), forward, region)
    return np.where(of_compilations(tree), -1, region)


def of_compilations(tree: CallTree) -> BoolArray:
    """Nodes of XLA's compilations and of what these run to choose kernels, which no step does again: [n_nodes]."""
    is_compilation = np.array([name.startswith(COMPILE) for name in tree.frames.name], np.bool_)[tree.frame]
    return with_descendants(tree, is_compilation)


def _region_of(kind: int, name: str, is_module: bool) -> int:
    """The region that a frame begins."""
    region = name.removeprefix(_SCOPE)
    if kind in (FrameKind.SCOPE, FrameKind.STATE) and region != name and region in REGIONS:
        return REGIONS.index(region)
    if kind == FrameKind.SCOPE:
        return REGIONS.index("forward") if is_module else -1
    if kind in (FrameKind.STATE, FrameKind.OPERATOR):
        return next((REGIONS.index(region) for region, begin in _OF_OPERATORS.items() if name.startswith(begin)), -1)
    return -1


def _tree() -> CallTree:
    """The regions and the rest as children of the root."""
    names = ["", *REGIONS, _OTHER]
    none = np.zeros(len(names), np.int32)
    kinds = np.array([FrameKind.ROOT, *[FrameKind.SCOPE] * (len(names) - 1)], np.uint8)
    frames = FrameTable(kinds, names, [""] * len(names), none, none - 1)
    rows = np.arange(len(names), dtype=np.int32)
    return CallTree(np.minimum(none, rows - 1), rows, frames)
