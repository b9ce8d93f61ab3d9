"""Steps of a program that uses no GPU: what its own code takes of them is what a change saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, lasting
from bragg.analyze.causes.needs import GPU_TIME, TRACE, Need
from bragg.analyze.causes.paths import IMPORTS, below, in_files
from bragg.analyze.causes.thresholds import OF_PROGRAM, OF_STEP
from bragg.analyze.wall.step_times import step_times
from bragg.grouping.regions import step_noun
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.table import BoolArray, FloatArray


@dataclass(frozen=True)
class HostSteps:
    """Steps without a GPU.

    Attributes:
        count: Of those in the steady state.
        duration_ns: Of all of these.
        of_run: Which part of the time in steps it is, without the first one, which is taken to be as long as others.
        made: How many the program made.
        noun: What to call one.
    """

    count: int
    duration_ns: float
    of_run: float
    made: int
    noun: str


@dataclass(frozen=True)
class HostCost:
    """How a finding describes a part of the steps.

    Attributes:
        rule: The rule that found it.
        what: What it is; how long it takes is added.
        change: What to do about it.
        saved: Share of it that goes away, 0 to 1; None: not known.
        once_ns: How much of it is of the first step alone.
    """

    rule: str
    what: str
    change: str
    saved: float | None
    once_ns: float = 0.0

    def gain(self, cost_ns: float, of_ns: float) -> Gain | None:
        """What is saved of a cost, as a part of a longer time; None: not known."""
        return None if self.saved is None else Gain(cost_ns * self.saved, of_ns)


def host_steps(evidence: Evidence) -> HostSteps | None:
    """The steps; None: a GPU worked, they are not known, or they are a small part of what the program does."""
    steps = made_steps(evidence)
    # Steps repeat no compilation.
    is_small = steps and steps.duration_ns < OF_PROGRAM.value * float(evidence.worked_ns[~evidence.compiling].sum())
    return None if is_small else steps


def made_steps(evidence: Evidence) -> HostSteps | None:
    """The steps, however small a part of the program they are; None: a GPU worked, or they are not known."""
    profile = evidence.profile
    if profile.measured("gpu_time") or profile.run.is_merged or "host_time" not in profile.metrics:
        return None
    times = step_times(profile)
    if times is None:
        return None
    after_first_ns = times.last_ns - int(times.ends_ns[0])
    step_ns, count = times.usual()
    if after_first_ns <= 0:
        return None
    of_run = (times.count - 1) / times.count * step_ns * count / after_first_ns
    return HostSteps(count, step_ns * count, of_run, times.count, step_noun(times.name))


WAITS_OR_STEPS = Need(
    "what GPUs waited for, or steps without a GPU",
    TRACE,
    lambda evidence: evidence.idle_ns is not None or host_steps(evidence) is not None,
)


GPU_TIME_OR_STEPS = Need(
    "GPU time, or steps without a GPU",
    "",
    lambda evidence: GPU_TIME.is_met(evidence) or host_steps(evidence) is not None,
)


def host_costs(
    evidence: Evidence, nodes: BoolArray, cost: HostCost, weight: FloatArray | None = None
) -> Iterator[Finding]:
    """At most one finding about the time of the host in nodes, [n_nodes], of a program without a GPU.

    Args:
        evidence: Of the program.
        nodes: Whose time: [n_nodes].
        cost: What it is.
        weight: Of the nodes that tell the line, [n_nodes]; None: their time.
    """
    steps = host_steps(evidence)
    if steps is None:
        return
    # Modules are imported once, not in each step.
    nodes = nodes & ~below(evidence.profile, in_files(evidence.profile, IMPORTS))
    own_ns = np.nan_to_num(evidence.profile.own("host_time").astype(np.float64))
    # A first step that was slow has more of it: no step takes longer than it does.
    in_steps_ns = max(float(own_ns[nodes].sum()) - cost.once_ns, 0.0)
    cost_ns = min(in_steps_ns * steps.of_run, steps.duration_ns)
    if cost_ns < OF_STEP.value * steps.duration_ns:
        return
    each_ns = cost_ns / steps.count
    cause = Cause(
        cost.rule,
        f"{cost.what}, {lasting(each_ns)} a step",
        cost.change,
        cost.gain(cost_ns, steps.duration_ns),
        Confidence.HEURISTIC,
        (Quantity("time a step", each_ns, "ns"), Quantity("steps", steps.count)),
    )
    weight = np.where(nodes, own_ns, 0.0) if weight is None else weight
    yield host_finding(evidence, weight > 0, weight, cause)
