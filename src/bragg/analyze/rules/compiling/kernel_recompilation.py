"""Triton kernels that are compiled, or loaded, for each value of an argument, and launched a few times each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_COUNT, HOST_TIME
from bragg.analyze.causes.paths import below, hottest_place, in_files, line_above
from bragg.analyze.causes.thresholds import FEW_USES, MANY_VERSIONS
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.kernels.names import base_name

_COMPILES = re.compile(r"triton[/\\]compiler[/\\]compiler\.py$")
_BACKENDS = re.compile(r"triton[/\\]backends[/\\]\w+[/\\]compiler\.py$")
_CHANGE = (
    "no tl.constexpr for what changes, do_not_specialize for numbers that are sometimes 1 or divisible by 16; pad or "
    "bucket sizes"
)
_TUNES = re.compile(r"triton[/\\]runtime[/\\]autotuner\.py$|_inductor[/\\]runtime[/\\]\w+\.py$")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    launches = np.nan_to_num(profile.own("gpu_count").astype(np.float64))
    time_ns = np.nan_to_num(profile.own("host_time").astype(np.float64))
    is_backend = in_files(profile, _BACKENDS)
    is_compiler, is_tuned = below(profile, in_files(profile, _COMPILES)), below(profile, in_files(profile, _TUNES))
    kernels: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node in np.flatnonzero((tree.kind == FrameKind.KERNEL) & ~is_tuned).tolist():
        name = tree.frames.name[tree.frame[node]]
        if base_name(name) != name:
            kernels[base_name(name)][name].append(node)
    for base, versions in kernels.items():
        nodes = [node for of_version in versions.values() for node in of_version]
        uses = float(launches[nodes].sum()) / len(versions)
        if len(versions) < MANY_VERSIONS.value or uses > FEW_USES.value:
            continue
        lines = [line for line in {line_above(profile, node) for node in nodes} if line is not None]
        callers = below(profile, np.isin(np.arange(len(tree)), lines))
        took_ns, wall_ns = float(time_ns[is_compiler & callers].sum()), profile.run.duration_ns
        # What the cache on disk has needs no backend.
        verb = "compiled" if (is_backend & callers).any() else "loaded from the cache on disk"
        often = "once" if round(uses) == 1 else f"{uses:.2g} times"
        place = hottest_place(profile, np.isin(np.arange(len(tree)), nodes), launches)
        yield Finding(
            "kernel-recompilation",
            Severity.WARNING,
            f"{base} was {verb} {len(versions)} times, {took_ns / 1e9:.2g} s, each version launched {often}",
            _CHANGE,
            node=place.node,
            kernel=base,
            file=place.file,
            line=place.line,
            evidence=(
                Quantity("versions", len(versions)),
                Quantity("launches of each", uses),
                Quantity("time of the compiler", took_ns, "ns"),
            ),
            gain=Gain(took_ns * (1 - 1 / len(versions)), wall_ns, is_once=True) if wall_ns else None,
            confidence=Confidence.PROVEN,
        )


RULE = Rule(
    _find,
    "Triton kernels that are compiled for each value of an argument",
    (GPU_COUNT, HOST_TIME),
    (MANY_VERSIONS, FEW_USES),
    _CHANGE,
)
