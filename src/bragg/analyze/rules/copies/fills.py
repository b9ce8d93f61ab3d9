"""Memory that is filled again and again, before it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import AUTOGRAD, BACKWARD, ZEROES, below, in_files, named
from bragg.analyze.causes.row_loops import loops_over_rows
from bragg.analyze.causes.thresholds import MANY_FILLS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Profile
from bragg.model.table import BoolArray

_WORK = Work(
    "fills",
    "fills of memory",
    "torch.empty instead of torch.zeros where all is written; zero_grad(set_to_none=True)",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.0,
)
_FILLS = re.compile(r"aten::(?:fill_|zero_|zeros|ones|full)|cu(?:da)?Memset\w*|set")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = below(profile, named(profile, _FILLS.fullmatch)) & evidence.has_work
    nodes &= ~below(profile, named(profile, ZEROES.match)) & ~loops_over_rows(evidence) & ~_of_autograd(profile)
    if float(evidence.gpu_count[nodes].sum()) >= MANY_FILLS.value * evidence.steps:
        yield from work_findings(evidence, nodes, _WORK)


def _of_autograd(profile: Profile) -> BoolArray:
    """What PyTorch's backward pass runs itself, in no function of the program: [n_nodes]."""
    inside = below(profile, named(profile, BACKWARD.fullmatch))
    called = below(profile, inside & (profile.tree.kind == FrameKind.PYTHON))
    found: BoolArray = (inside & ~called) | below(profile, in_files(profile, AUTOGRAD))
    return found


RULE = Rule(_find, "many fills of memory", (GPU_TIME,), (MANY_FILLS,), _WORK.change, host_time=HostTime.CAUSE)
