"""Triton kernels that are compiled, or loaded, for each value of an argument, and launched a few times each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_COUNT, HOST_TIME
from bragg.analyze.causes.paths import hottest_place, in_files, line_above
from bragg.analyze.causes.recompiled_kernels import Recompiled, recompiled_kernels
from bragg.analyze.causes.text.text_calls import argument
from bragg.analyze.causes.thresholds import FEW_USES, MANY_VERSIONS
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of
from bragg.model import Confidence, Finding, Gain, Place, Quantity, Severity

_BACKENDS = re.compile(r"triton[/\\]backends[/\\]\w+[/\\]compiler\.py$")
_CHANGE = (
    "no tl.constexpr for what changes, do_not_specialize for numbers that are sometimes 1 or divisible by 16; pad or "
    "bucket sizes"
)
_CONSTANT = re.compile(r"(\w+)=(\S+)")
# Of the compiler's time, which the steady state waits for: then it is no matter of the start.
_RECURS = 0.5


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    launches = np.nan_to_num(profile.own("gpu_count").astype(np.float64))
    is_backend = in_files(profile, _BACKENDS)
    for kernel in recompiled_kernels(evidence):
        count = len(kernel.versions)
        # What the cache on disk has needs no backend.
        verb = "compiled" if (is_backend & kernel.callers).any() else "loaded from the cache on disk"
        often = "once" if round(kernel.uses) == 1 else f"{kernel.uses:.2g} times"
        place = hottest_place(profile, kernel.nodes, launches)
        finding = Finding(
            "kernel-recompilation",
            Severity.WARNING,
            f"{kernel.name} was {verb} {count} times, {kernel.took_ns / 1e9:.2g} s, each version launched {often}",
            _CHANGE,
            node=place.node,
            kernel=kernel.name,
            file=place.file,
            line=place.line,
            evidence=(
                Quantity("versions", count),
                Quantity("launches of each", kernel.uses),
                Quantity("time of the compiler", kernel.took_ns, "ns"),
            ),
            gain=_gain(evidence, kernel),
            confidence=Confidence.PROVEN,
        )
        yield moved_to(finding, _changes_at(evidence, finding, kernel))


def _gain(evidence: Evidence, kernel: Recompiled) -> Gain | None:
    """What the steady state waits for, if it compiles on and on; else what the run saves once."""
    wall_ns, again = evidence.profile.run.duration_ns, 1 - 1 / len(kernel.versions)
    if evidence.of_steady and evidence.idle_ns is not None:
        waits_ns = min(float(evidence.code_wait_ns[kernel.callers].sum()), kernel.took_ns)
        if waits_ns > _RECURS * kernel.took_ns:
            return evidence.gain(waits_ns * again)
    return Gain(kernel.took_ns * again, wall_ns, is_once=True) if wall_ns else None


def _changes_at(evidence: Evidence, finding: Finding, kernel: Recompiled) -> list[Place]:
    """Where a launch gives a constant that is another one in each version, and the kernel's parameter for it."""
    constants = [dict(_CONSTANT.findall(version)) for version in kernel.versions]
    changing = {name for name in constants[0] if len({each.get(name) for each in constants}) > 1}
    line = None if finding.node is None else line_above(evidence.profile, finding.node)
    at = None if line is None else evidence.text.at(line)
    if at is None:
        return []
    given = [argument(call, name) for call in parts_of(at[1], ast.Call) for name in sorted(changing)]
    made = [each for function in at[0].functions.get(kernel.name, []) for each in parts_of(function.args, ast.arg)]
    parameters = [each.lineno for each in made if each.arg in changing]
    lines = [each.lineno for each in given if each is not None] or ([finding.line] if parameters else [])
    return [Place(finding.file, each, node=finding.node) for each in (*lines, *parameters)]


RULE = Rule(
    _find,
    "Triton kernels that are compiled for each value of an argument",
    (GPU_COUNT, HOST_TIME),
    (MANY_VERSIONS, FEW_USES),
    _CHANGE,
)
