"""Work of a program without a GPU: which share of its steps, or of all its time, a change saves."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.host_steps import HostCost, host_costs, host_steps
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME, Need
from bragg.analyze.causes.thresholds import OF_STEP
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text
from bragg.model.table import BoolArray

WORK_TIME = Need(
    "GPU time, or host time without a GPU",
    "",
    lambda evidence: GPU_TIME.is_met(evidence) or HOST_TIME.is_met(evidence),
)
NO_GPU = Need(
    "a program without a GPU", "", lambda evidence: not evidence.profile.measured("gpu_time"), is_of_program=True
)


def host_work(
    evidence: Evidence, nodes: BoolArray, cost: HostCost, least_share: float = OF_STEP.value
) -> Iterator[Finding]:
    """At most one finding about the time of the host in nodes, [n_nodes]; none where a GPU worked.

    Args:
        evidence: Of the program.
        nodes: Whose time.
        cost: What it is.
        least_share: Of the host's time; less is not told.
    """
    own_ns = evidence.worked_ns
    cost_ns, host_ns = float(own_ns[nodes].sum()), float(own_ns.sum())
    if not cost_ns or cost_ns < least_share * host_ns:
        return
    if host_steps(evidence) is not None:
        yield from host_costs(evidence, nodes, cost)
        return
    cause = Cause(
        cost.rule,
        f"{cost.what}, {percent_text(cost_ns / host_ns)} of the host's time",
        cost.change,
        cost.gain(cost_ns, host_ns),
        Confidence.HEURISTIC,
        (Quantity("host time", cost_ns, "ns"),),
    )
    yield host_finding(evidence, nodes, own_ns, cause)
