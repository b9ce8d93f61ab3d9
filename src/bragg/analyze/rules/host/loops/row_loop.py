"""Loops over the rows of a tensor that launch the same work for each row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved_to
from bragg.analyze.causes.host_steps import WAITS_OR_STEPS, HostCost, host_costs
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.row_loops import row_loops
from bragg.analyze.causes.thresholds import MANY_ROWS, OF_HOST, OF_STEP, PLAN_SHARE, RECURRING, WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_CHANGE = (
    "compute all rows at once, or with torch.vmap; if each row needs the one before: a fused operator (nn.LSTM), "
    "or torch.compile around the loop"
)
# One operator for all rows costs little more than that for one, as far as calls are what costs.
_SAVED = 0.9
_READS = {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"}


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None:
        yield from _without_gpu(evidence)
        return
    for loop in row_loops(evidence):
        nodes = loop.nodes & evidence.host.launching
        waits_ns = float(evidence.idle_ns[nodes].sum())
        n_kernels = float(evidence.gpu_count[loop.nodes].sum()) / loop.rows
        host_ns = float(evidence.recurring_host_ns[nodes].sum())
        is_long = waits_ns >= PLAN_SHARE.value * evidence.wall_ns or host_ns >= OF_HOST.value * evidence.wall_ns
        if not is_long or n_kernels < 1:
            continue
        each, plural = loop.rows / loop.tensors, "" if round(n_kernels, 2) == 1 else "s"
        cause = Cause(
            "row-loop",
            f"a loop takes {each:,.0f} rows of a tensor one by one and launches {n_kernels:,.3g} kernel{plural} for "
            "each",
            _CHANGE,
            evidence.gain(waits_ns * (1 - 1 / each)),
            Confidence.HEURISTIC,
            (
                Quantity("rows", each),
                Quantity("kernels a row", n_kernels),
                Quantity(f"waits for the host {evidence.step_word}", evidence.per_step(waits_ns), "ns"),
            ),
        )
        yield moved_to(host_finding(evidence, nodes, evidence.idle_ns, cause), loop.places)


def _without_gpu(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    for loop in row_loops(evidence):
        reads = not (loop.nodes & ~named(profile, _READS.__contains__)).any()
        does, what = ("reads", "elements") if reads else ("takes", "rows")
        cost = HostCost(
            "row-loop",
            f"a loop {does} {loop.rows / loop.tensors:,.0f} {what} of a tensor one by one",
            "tensor.tolist(), once; or compute with the whole tensor" if reads else _CHANGE,
            _SAVED,
        )
        nodes = loop.nodes | loop.code
        below_lines = np.where(nodes, np.nan_to_num(profile.own("host_time").astype(np.float64)), 0.0)
        yield from host_costs(evidence, nodes, cost, np.where(loop.lines, profile.tree.sum_up(below_lines), 0.0))


RULE = Rule(
    _find,
    "loops over the rows of a tensor, with launches for each row",
    (WAITS_OR_STEPS, OPERATORS),
    (MANY_ROWS, OF_HOST, OF_STEP, PLAN_SHARE, RECURRING, WAITS),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
