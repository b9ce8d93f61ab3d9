"""A finding about the code of a kernel, or about how it is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.text.launch_constants import line_of_constants
from bragg.analyze.causes.work_finding import OF_KERNEL
from bragg.model import Confidence, Finding, Place, Quantity, Severity
from bragg.model.finding import COMPILED_FOR, percent_text
from bragg.model.ids import NodeId
from bragg.model.kernels.compiled import CompiledKernel


@dataclass(frozen=True)
class Defect:
    """What is wrong with a kernel.

    Attributes:
        what: What it does: `loads 2 B at once`; the name of the kernel goes before it.
        change: What to do about it.
        saved: Share of its time that goes away, 0 to 1; None: not known.
        confidence: How sure it is.
        places: Lines of its source, that to blame first; none: the line that launches it is to blame.
        evidence: The numbers that it rests on.
        saving_is_measured: Whether samples or clocks tell `saved`.
        is_of_launch: Whether the launch is to be changed (its tile, warps or stages): its line is to blame first.
    """

    what: str
    change: str
    saved: float | None
    confidence: Confidence
    places: Sequence[Place] = ()
    evidence: tuple[Quantity, ...] = ()
    saving_is_measured: bool = False
    is_of_launch: bool = False


Judge = Callable[[HotKernel, CompiledKernel], Defect | None]
"""What is wrong with a kernel; None: nothing of the kind."""


def kernel_findings(evidence: Evidence, rule: str, judge: Judge) -> Iterator[Finding]:
    """At most one finding for each kernel whose code is known and whose time matters."""
    for kernel in evidence.hot_kernels:
        defect = judge(kernel, kernel.compiled) if kernel.compiled else None
        if defect is not None:
            yield finding_of_kernel(evidence, rule, kernel, defect)


def finding_of_kernel(evidence: Evidence, rule: str, kernel: HotKernel, defect: Defect) -> Finding:
    """A defect with its kernel's name, places and gain."""
    time_ns = evidence.profile.own("host_time").astype(np.float64) if kernel.target else evidence.gpu_ns
    launch = hottest_place(evidence.profile, kernel.nodes, time_ns)
    first = _places_of_launch(evidence, kernel, launch) if defect.is_of_launch else []
    named = (Place(each.file, each.line) for each in (*first, *defect.places) if each.file)
    places = list(dict.fromkeys(named)) or [launch]
    saved = None if defect.saved is None else min(defect.saved, 1.0)
    share = Quantity("share of the GPU time", kernel.share, "share")
    estimated = [] if saved is None else [Quantity(OF_KERNEL, saved, "share")]
    return Finding(
        rule,
        Severity.WARNING,
        f"{kernel.base} {defect.what}; {_weight_text(kernel)}",
        defect.change,
        node=NodeId(int(np.where(kernel.nodes, time_ns, -1).argmax())),
        kernel=kernel.name,
        file=places[0].file,
        line=places[0].line,
        evidence=(*defect.evidence, *(estimated if kernel.target else [share])),
        places=tuple(places[1:]),
        gain=None
        if saved is None or kernel.target
        else evidence.gpu_gain(kernel.nodes, saved, saving_is_measured=defect.saving_is_measured),
        confidence=defect.confidence,
        details=((COMPILED_FOR, kernel.target),) if kernel.target else (),
    )


def _weight_text(kernel: HotKernel) -> str:
    if kernel.target:
        return f"expected on {kernel.target}, not timed"
    return f"{percent_text(kernel.share)} of the GPU time"


def _places_of_launch(evidence: Evidence, kernel: HotKernel, launch: Place) -> list[Place]:
    """Where the numbers of a launch are written, if not in it, and the launch."""
    file = evidence.text.file(launch.file)
    line = line_of_constants(file, launch.line, kernel.constants) if file else None
    return [launch] if line is None else [Place(launch.file, line), launch]


def names_text(names: Sequence[str]) -> str:
    """`n`, `m` and `k` as words of a sentence."""
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} and {unique[-1]}"


def counted_text(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
