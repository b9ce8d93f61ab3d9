"""Functions that JAX compiles again and again while the program runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.engine import Rule, Subject
from bragg.grouping.hlo_names import COMPILE
from bragg.model import Confidence, Finding, Gain, Profile, Quantity, Severity

__all__ = ["RULE"]

# Fewer are the shapes of a first and a last batch.
_OFTEN = 3
_N_FINDINGS = 2


@dataclass(frozen=True)
class _Compiled:
    """Compilations of one module: how many, and how long they took."""

    module: str
    count: int
    time_ns: int


def _find(evidence: Evidence) -> Iterator[Finding]:
    again = [each for each in _compilations(evidence.profile) if each.count >= _OFTEN]
    again.sort(key=lambda each: -each.time_ns)
    for each in again[:_N_FINDINGS]:
        yield Finding(
            "recompilation",
            Severity.WARNING,
            f"{each.module} was compiled {each.count} times, {each.time_ns / 1e9:.2g} s: its calls differ in "
            "shapes, types or static arguments, or the program makes a new function each time",
            hint="which: JAX_EXPLAIN_CACHE_MISSES=1",
            evidence=(Quantity("compilations", each.count), Quantity("time", each.time_ns, "ns")),
            gain=_gain(evidence, each),
            confidence=Confidence.PROVEN,
        )


def _gain(evidence: Evidence, each: _Compiled) -> Gain | None:
    """All compilations but one."""
    wall_ns = evidence.profile.run.duration_ns
    return Gain(each.time_ns * (each.count - 1) / each.count, wall_ns, is_once=True) if wall_ns else None


def _compilations(profile: Profile) -> list[_Compiled]:
    if "host_count" not in profile.metrics or "host_time" not in profile.metrics:
        return []
    tree = profile.tree
    times, counts = profile.inclusive("host_time"), profile.own("host_count")
    found = []
    for frame, name in enumerate(tree.frames.name):
        if name.startswith(COMPILE):
            nodes = np.flatnonzero(tree.frame == frame)
            found.append(_Compiled(name.removeprefix(COMPILE), int(counts[nodes].sum()), int(times[nodes].sum())))
    return found


RULE = Rule(_find, Subject.RUN, "functions that JAX compiles again and again", (HOST_TIME,))
