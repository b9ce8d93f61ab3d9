"""Functions that JAX compiles again and again while the program runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.causes.paths import below, hottest_place
from bragg.analyze.engine import Rule
from bragg.grouping.hlo_names import COMPILE
from bragg.model import Confidence, Finding, Gain, Place, Quantity, Severity

__all__ = ["RULE"]

# Fewer are the shapes of a first and a last batch.
_OFTEN = 3
_N_FINDINGS = 2


@dataclass(frozen=True)
class _Compiled:
    """Compilations of one module: how many, how long they took in all and at most, and who called."""

    module: str
    count: int
    time_ns: float
    longest_ns: float
    place: Place


def _find(evidence: Evidence) -> Iterator[Finding]:
    again = [each for each in _compilations(evidence) if each.count >= _OFTEN]
    again.sort(key=lambda each: -each.time_ns)
    for each in again[:_N_FINDINGS]:
        yield Finding(
            "recompilation",
            Severity.WARNING,
            f"{each.module} was compiled {each.count} times, {each.time_ns / 1e9:.2g} s: its calls differ in "
            "shapes, types or static arguments, or the program makes a new function each time",
            hint="keep these and the function the same; JAX_EXPLAIN_CACHE_MISSES=1 lets JAX tell what differs",
            node=each.place.node,
            file=each.place.file,
            line=each.place.line,
            evidence=(Quantity("compilations", each.count), Quantity("time", each.time_ns, "ns")),
            gain=_gain(evidence, each),
            confidence=Confidence.PROVEN,
        )


def _gain(evidence: Evidence, each: _Compiled) -> Gain | None:
    """All compilations but the longest, which is the first: it loads libraries, and tries kernels, for all of them."""
    wall_ns = evidence.profile.run.duration_ns
    again_ns = each.time_ns - max(each.time_ns / each.count, min(each.longest_ns, each.time_ns))
    return Gain(min(again_ns, wall_ns), wall_ns, is_once=True) if wall_ns else None


def _compilations(evidence: Evidence) -> list[_Compiled]:
    profile = evidence.profile
    if "host_count" not in profile.metrics or "host_time" not in profile.metrics:
        return []
    tree = profile.tree
    compiled = [(frame, name) for frame, name in enumerate(tree.frames.name) if name.startswith(COMPILE)]
    if not compiled:
        return []
    times, counts = profile.inclusive("host_time"), profile.own("host_count")
    found = []
    for frame, name in compiled:
        nodes = np.flatnonzero(tree.frame == frame)
        below_them = below(profile, tree.frame == frame)
        longest_ns = float(evidence.longest_wait_ns[below_them].max())
        place = hottest_place(profile, tree.frame == frame, times)
        # Threads of XLA that compile side by side are added up in the host's time, but the GPU waits once.
        waited_ns = float(evidence.waits_of_run_ns[below_them].sum())
        count, time_ns = int(counts[nodes].sum()), min(float(times[nodes].sum()), waited_ns or np.inf)
        found.append(_Compiled(name.removeprefix(COMPILE), count, time_ns, longest_ns, place))
    return found


RULE = Rule(_find, "functions that JAX compiles again and again", (HOST_TIME,))
