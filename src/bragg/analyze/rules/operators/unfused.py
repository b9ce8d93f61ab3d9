"""Many elementwise kernels, each of which reads and writes all of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MANY_ELEMENTWISE
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

# A chain of n kernels that becomes one saves (n - 1) / n of the traffic; chains of two and three are the usual ones.
_WORK = Work(
    "unfused-elementwise",
    "elementwise kernels, each of which reads and writes whole tensors",
    "torch.compile fuses them",
    0.5,
    Confidence.HEURISTIC,
    least_share=0.15,
)
# Without steps a call path counts as one, though it may be taken often in each.
_CHAIN = 4
_ELEMENTWISE = re.compile(r"at::native.*elementwise_kernel|at6native\d*.*elementwise_kernel")
_COPIES = re.compile(r"copy_kernel|FillFunctor")


def _find(evidence: Evidence) -> Iterator[Finding]:
    nodes = named(evidence.profile, lambda name: _ELEMENTWISE.search(name) and not _COPIES.search(name))
    nodes &= ~below(evidence.profile, named(evidence.profile, lambda name: name.startswith("Optimizer.")))
    count = float(evidence.gpu_count[nodes].sum())
    many = MANY_ELEMENTWISE.value * evidence.n_steps if evidence.n_steps else _CHAIN * evidence.steps
    if count >= many:
        yield from work_findings(evidence, nodes, _WORK)


RULE = Rule(
    _find, "chains of elementwise kernels", (GPU_TIME,), (MANY_ELEMENTWISE,), _WORK.change, host_time=HostTime.CAUSE
)
