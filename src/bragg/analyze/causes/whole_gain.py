"""What a program gains when work of a GPU goes away together with the host's code that launches it."""

from __future__ import annotations

from bragg.analyze.causes.evidence import Evidence
from bragg.model import Gain
from bragg.model.table import BoolArray


def whole_gain(evidence: Evidence, nodes: BoolArray, saved: float | None = 1.0) -> Gain | None:
    """What the program gains when these nodes' work of the GPU and their host code go away.

    Args:
        evidence: Of the program.
        nodes: [n_nodes], kernels, copies and what launches them.
        saved: Share of both that goes away, 0 to 1; None: not known.
    """
    if saved is None:
        return None
    gpu, host = evidence.gpu_gain(nodes, saved, with_launches=True), evidence.host_gain(nodes, saved)
    if gpu is None and host is None:
        return None
    waits_ns = sum(each.wall_ns for each in (gpu, host) if each)
    overlapped_ns = _overlapped_ns(evidence, nodes, saved, host.wall_ns) if host else 0.0
    limit = "" if gpu is None or (host and host.wall_ns) else gpu.limit
    return evidence.gain(max(waits_ns, overlapped_ns), limit)


def _overlapped_ns(evidence: Evidence, nodes: BoolArray, saved: float, waits_ns: float) -> float:
    """What is saved where host and GPU work at the same time, as sums tell; 0 where a timeline tells more.

    While the GPU works, the host launches what comes next: nobody waits for that, and still the host takes that long.
    These nodes have a part of it as large as that of the host's time, in which it waits for nothing. The program cannot
    take less than either of both does for what is left.
    """
    if evidence.has_timeline or evidence.n_devices > 1 or evidence.busy is None or evidence.is_jitted:
        return 0.0
    gpu_ns, busy_ns = float(evidence.gpu_ns[nodes].sum()) * saved, evidence.busy * evidence.wall_ns
    launching_ns = evidence.wall_ns - float(evidence.host_ns[evidence.host.waiting].sum())
    if launching_ns <= 0:
        return 0.0
    share = min(float(evidence.recurring_host_ns[nodes].sum()) * saved / launching_ns, 1.0)
    host_ns = waits_ns + min(busy_ns, launching_ns) * share
    left_ns = max(launching_ns - host_ns, busy_ns - gpu_ns)
    return max(min(host_ns + gpu_ns, evidence.wall_ns - left_ns), 0.0)
