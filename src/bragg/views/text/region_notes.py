"""Notes below a table of regions: which steps its times belong to, and findings about them."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, in_files
from bragg.analyze.engine import findings
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.wall_time import Steady
from bragg.grouping.hlo_names import CALLS
from bragg.grouping.regions import are_recorded, of_compilations, step_function
from bragg.model import FrameKind, Profile
from bragg.registry import STEP_RULES
from bragg.views.text.training_steps import steps_line
from bragg.views.text.units import count_text, time_text
from bragg.views.text.wall_line import busy_text

_N_FUNCTIONS = 3
# What JAX runs to trace and lower a function; a call that is compiled already may run other files of it.
_TRACES = re.compile(r"[/\\]jax[/\\]_src[/\\](?:linear_util|api_util|interpreters[/\\](?:partial_eval|mlir))\.py$")


def region_notes(profile: Profile, regions: Profile) -> list[str]:
    """Sentences for below the table of regions.

    Args:
        profile: What was recorded.
        regions: The same, as `bragg.grouping.regions.group_by_region` makes it.
    """
    if "region_time" not in regions.metrics:
        missing = "times of regions n/a: the program was killed, or recorded without --regions"
        return _jitted_calls(profile) or [missing]
    if not regions.own("region_calls")[0] or not regions.total("region_time"):
        return ["no optimizer made a step: times are those of the whole run"]
    function = step_function(profile.meta)
    count = regions.own("region_calls")[0]
    if function:
        return [f"{count} steps, calls of {function}, each from the end of the one before", *_jitted_calls(profile)]
    steps = f"{count} steps; the row of the total is a whole step"
    if not are_recorded(regions):
        return [steps, "what they consist of: bragg run --regions all"]
    parts = wall_parts(profile)
    if parts and parts.steady and parts.steady.n_steps:
        return [steps, *_of_steady(profile, parts.steady)]
    return [steps, *(finding.text for finding in findings(Evidence(profile, regions), STEP_RULES))]


def _of_steady(profile: Profile, steady: Steady) -> list[str]:
    """What steps are like after the warm-up, whose own may be a hundred times as long and make up most of the sums."""
    busy = f", {busy_text(steady.busy)}" if steady.busy else ""
    line = f"without warm-up: {count_text(steady.n_steps, steady.step)} of {time_text(steady.step_ns)}{busy}"
    return [line, *filter(None, [steps_line(profile, steady)])]


def _jitted_calls(profile: Profile) -> list[str]:
    """The steps of JAX: calls of the jitted functions that took the most host time, besides tracing and compiling them.

    Native code traces, too: where the recorder knows the time of all calls but the longest, they have no more.
    """
    tree = profile.tree
    if not {"host_time", "host_count"} <= profile.metrics.keys():
        return []
    counts = profile.own("host_count")
    is_once = of_compilations(tree) | below(profile, in_files(profile, _TRACES))
    host_ns = tree.sum_up(np.where(is_once, 0, profile.own("host_time")))
    time_ns: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for node in np.flatnonzero((tree.kind == FrameKind.OPERATOR) & (counts > 0)).tolist():
        if tree.label(node).startswith(CALLS):
            time_ns[tree.label(node)] += float(host_ns[node])
            calls[tree.label(node)] += int(counts[node])
    mean_ns = {name: min(time_ns[name] / calls[name], _mean_of_short_calls(profile, name)) for name in calls}
    longest = sorted(calls, key=lambda name: -mean_ns[name] * calls[name])[:_N_FUNCTIONS]
    return [_calls_text(name, calls[name], mean_ns[name]) for name in longest]


def _mean_of_short_calls(profile: Profile, name: str) -> float:
    """The mean of all calls but the longest, ns; infinite: not known."""
    told = profile.run.regions.table(f"step of {name}")
    count, called_ns = told.integer("count"), told.integer("called_ns")
    return called_ns / (count - 1) if count and called_ns and count > 1 else np.inf


def _calls_text(name: str, n_calls: int, mean_ns: float) -> str:
    calls = "1 call" if n_calls == 1 else f"{n_calls} calls"
    return f"{name}: {calls}, {mean_ns / 1e6:.2f} ms of the host each, without tracing and compiling"
