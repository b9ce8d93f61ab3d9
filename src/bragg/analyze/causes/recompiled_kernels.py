"""Triton kernels that are compiled, or loaded, for each value of an argument, and launched a few times each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, in_files, line_above
from bragg.analyze.causes.thresholds import FEW_USES, MANY_VERSIONS
from bragg.model import FrameKind
from bragg.model.kernels.names import base_name
from bragg.model.table import BoolArray

_COMPILES = re.compile(r"triton[/\\]compiler[/\\]compiler\.py$")
_TUNES = re.compile(r"triton[/\\]runtime[/\\]autotuner\.py$|_inductor[/\\]runtime[/\\]\w+\.py$")


@dataclass(frozen=True, eq=False)
class Recompiled:
    """One kernel.

    Attributes:
        name: Without its constants.
        versions: With them.
        nodes: Its launches: [n_nodes].
        callers: What the lines call that launch it: [n_nodes].
        uses: Launches of each version.
        took_ns: How long its compiler took in the whole run.
    """

    name: str
    versions: list[str]
    nodes: BoolArray
    callers: BoolArray
    uses: float
    took_ns: float


def recompiled_kernels(evidence: Evidence) -> Iterator[Recompiled]:
    """Those of a run; autotuned ones are another matter."""
    profile, tree = evidence.profile, evidence.profile.tree
    if not {"gpu_count", "host_time"} <= profile.metrics.keys():
        return
    launches = np.nan_to_num(profile.own("gpu_count").astype(np.float64))
    time_ns = np.nan_to_num(profile.own("host_time").astype(np.float64))
    is_compiler, is_tuned = below(profile, in_files(profile, _COMPILES)), below(profile, in_files(profile, _TUNES))
    kernels: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node in np.flatnonzero((tree.kind == FrameKind.KERNEL) & ~is_tuned).tolist():
        name = tree.frames.name[tree.frame[node]]
        if base_name(name) != name:
            kernels[base_name(name)][name].append(node)
    every = np.arange(len(tree))
    for base, versions in kernels.items():
        nodes = [node for of_version in versions.values() for node in of_version]
        uses = float(launches[nodes].sum()) / len(versions)
        if len(versions) < MANY_VERSIONS.value or uses > FEW_USES.value:
            continue
        lines = [line for line in {line_above(profile, node) for node in nodes} if line is not None]
        callers = below(profile, np.isin(every, lines))
        took_ns = float(time_ns[is_compiler & callers].sum())
        yield Recompiled(base, list(versions), np.isin(every, nodes), callers, uses, took_ns)
