"""Functions that torch.compile compiles again, for other shapes, types or values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.causes.paths import below, hottest_place, named
from bragg.analyze.engine import Rule
from bragg.grouping.compiled_regions import AFTER_BREAK, COMPILED_REGION
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.table import BoolArray

# The second compilation makes sizes symbolic; a third one is for another reason.
_OFTEN = 3
# PyTorch's own limit, unless the program sets another one.
_LIMIT = 8
_UNCOMPILED = ", PyTorch's limit: other calls of it run uncompiled"
_CHANGE = "torch.compile(dynamic=True), or pad shapes, where these change; why: TORCH_LOGS=recompiles"
_AFTER_BREAK = (
    "no graph break before it: for each new number that Python reads there, as by .item(), it is compiled again; "
    "why: TORCH_LOGS=recompiles,graph_breaks"
)
_REGION = re.compile(rf"{COMPILED_REGION}(?:(?P<what>.+) \()?(?P<frame>\d+)/(?P<version>\d+)\)?")


def _find(evidence: Evidence) -> Iterator[Finding]:
    versions: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    for name in evidence.profile.tree.frames.name:
        if match := _REGION.fullmatch(name):
            versions[match["frame"]].add(match["version"])
            shown[match["frame"]] = match["what"] or f"region {match['frame']}"
    for frame, found in versions.items():
        if len(found) < _OFTEN:
            continue
        of_versions = {
            version: below(evidence.profile, named(evidence.profile, partial(_is_version, frame, version)))
            for version in found
        }
        waits_ns = {version: float(evidence.longest_wait_ns[nodes].max()) for version, nodes in of_versions.items()}
        nodes = np.any(list(of_versions.values()), axis=0)
        place = hottest_place(evidence.profile, nodes, np.where(nodes, evidence.longest_wait_ns, 0.0))
        yield Finding(
            "torch-recompilation",
            Severity.WARNING,
            f"{shown[frame]} was compiled {len(found)} times{_UNCOMPILED * (len(found) == _LIMIT)}",
            _AFTER_BREAK if AFTER_BREAK in shown[frame] else _CHANGE,
            node=place.node,
            file=place.file,
            line=place.line,
            evidence=(Quantity("compilations", len(found)),),
            gain=_gain(evidence, waits_ns, nodes)
            if evidence.profile.measured("gpu_time")
            else _gain_of_host(evidence, (len(found) - 1) / sum(map(len, versions.values()))),
            confidence=Confidence.PROVEN,
        )


def _is_version(frame: str, version: str, name: str) -> bool:
    match = _REGION.fullmatch(name)
    return match is not None and (match["frame"], match["version"]) == (frame, version)


def _gain(evidence: Evidence, waits_ns: dict[str, float], versions: BoolArray) -> Gain | None:
    """All compilations but the first: before the first launch of a version, the GPU waits while it is compiled.

    Where a scope is around the call, as that of a module, the wait is there: in the steady state, what compiles does so
    again.
    """
    wall_ns = evidence.profile.run.duration_ns
    again_ns = sum(waits_ns.values()) - waits_ns[min(waits_ns, key=int)]
    if evidence.idle_ns is not None and evidence.of_steady:
        tree = evidence.profile.tree
        around = (tree.sum_up(versions.astype(np.int64)) > 0) & (tree.kind == FrameKind.SCOPE)
        compiles = evidence.compiling & below(evidence.profile, around)
        compiler_ns = float(np.nansum(evidence.profile.own("host_time")[compiles]))
        again_ns = max(again_ns, min(float(evidence.idle_ns[around].sum()), compiler_ns))
    return Gain(min(again_ns, wall_ns), wall_ns, is_once=True) if wall_ns and again_ns else None


def _gain_of_host(evidence: Evidence, again: float) -> Gain | None:
    """The same without a GPU: so large a part of all compilations, which are taken to be as long as each other."""
    profile, wall_ns = evidence.profile, evidence.profile.run.duration_ns
    if not wall_ns or "host_time" not in profile.metrics:
        return None
    again_ns = again * float(np.nansum(profile.own("host_time")[evidence.compiling]))
    return Gain(min(again_ns, wall_ns), wall_ns, is_once=True) if again_ns else None


RULE = Rule(
    _find,
    "functions that torch.compile compiles again and again",
    (OPERATORS,),
    (),
    "torch.compile(dynamic=True), or pad shapes",
)
