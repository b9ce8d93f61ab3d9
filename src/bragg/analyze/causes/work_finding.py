"""A finding about work of the GPU that need not be done, or not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import counted, moved_to, with_places
from bragg.analyze.causes.host_steps import HostCost
from bragg.analyze.causes.host_work import host_work
from bragg.analyze.causes.paths import OPERATIONS, below, hot_places, place_of
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.finding import percent_text
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

SHARE_OF_GPU = "share of the GPU time"
OF_KERNEL = "share of the kernel's time, estimated by other kernels"
"""A quantity of these findings."""


@dataclass(frozen=True)
class Work:
    """How a finding describes work.

    Attributes:
        rule: The rule that found it.
        what: What it is: `matrix products in full precision`.
        change: What to do about it.
        saved: Share of its time that goes away, 0 to 1; None: not known.
        confidence: How sure it is.
        with_host: Whether the code of the host that launches it goes away with it.
        least_share: Of the GPU time; less is not told.
        is_launched: Whether each of `what` takes several launches: then these are counted, and named so.
    """

    rule: str
    what: str
    change: str
    saved: float | None
    confidence: Confidence
    with_host: bool = False
    least_share: float = MUCH_GPU.value
    is_launched: bool = False


def work_findings(evidence: Evidence, nodes: BoolArray, work: Work) -> Iterator[Finding]:
    """At most one finding about nodes, [n_nodes]."""
    tree = evidence.profile.tree
    of_gpu = nodes & np.isin(tree.kind, (FrameKind.KERNEL, FrameKind.MEMORY))
    gpu_ns, total_ns = float(evidence.gpu_ns[of_gpu].sum()), float(evidence.gpu_ns.sum())
    count = float(evidence.gpu_count[of_gpu].sum())
    if not gpu_ns or gpu_ns < work.least_share * total_ns:
        return
    heaviest = int(np.where(of_gpu, evidence.gpu_ns, 0).argmax())
    places = hot_places(evidence.profile, of_gpu, evidence.gpu_ns, OPERATIONS)
    place = places[0]
    yield with_places(
        evidence,
        Finding(
            work.rule,
            Severity.WARNING,
            f"{work.what}: {_counted(evidence, count, work)}, {percent_text(gpu_ns / total_ns)} of the GPU time",
            work.change,
            node=place.node,
            kernel=tree.frames.name[tree.frame[heaviest]],
            file=place.file,
            line=place.line,
            evidence=(
                Quantity(f"launches {evidence.step_word}", evidence.per_step(count)),
                Quantity(SHARE_OF_GPU, gpu_ns / total_ns, "share"),
                Quantity(f"GPU time {evidence.step_word}", evidence.per_step(gpu_ns), "ns"),
            ),
            gain=_gain(evidence, nodes, of_gpu, work),
            confidence=work.confidence,
        ),
        places,
    )


def _gain(evidence: Evidence, nodes: BoolArray, of_gpu: BoolArray, work: Work) -> Gain | None:
    if work.saved is None:
        return None
    return whole_gain(evidence, nodes, work.saved) if work.with_host else evidence.gpu_gain(of_gpu, work.saved)


def _counted(evidence: Evidence, count: float, work: Work) -> str:
    return counted(evidence, count, "launch", "launches") if work.is_launched else counted(evidence, count)


def line_findings(evidence: Evidence, lines: Sequence[int], work: Work) -> Iterator[Finding]:
    """What is to be said of all work below some lines of the program: at the one with most of it, with the others.

    Where there is no GPU, the work is the host's.

    Args:
        evidence: Of the profile.
        lines: Their nodes.
        work: What it is.
    """
    tree = evidence.profile.tree
    chosen = np.zeros(len(tree), np.bool_)
    chosen[lines] = True
    nodes, has_gpu = below(evidence.profile, chosen), evidence.profile.measured("gpu_time")
    works = tree.sum_up(evidence.gpu_ns if has_gpu else evidence.worked_ns)
    places = [place_of(evidence.profile, NodeId(line)) for line in sorted(lines, key=lambda each: -float(works[each]))]
    for finding in work_or_host_findings(evidence, nodes, work):
        yield moved_to(finding, places)


def work_or_host_findings(evidence: Evidence, nodes: BoolArray, work: Work) -> Iterator[Finding]:
    """At most one finding about nodes, [n_nodes]; where there is no GPU, about work of the host."""
    if evidence.profile.measured("gpu_time"):
        return work_findings(evidence, nodes, work)
    return host_work(evidence, nodes, HostCost(work.rule, work.what, work.change, work.saved), work.least_share)
