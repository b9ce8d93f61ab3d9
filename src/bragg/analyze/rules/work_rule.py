"""The rule that finds work of GPUs by the names of its kernels and copies alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Finding


def work_rule(work: Work, names: re.Pattern[str], finds: str) -> Rule:
    """A rule about all work whose name has a match.

    Args:
        work: How a finding describes it.
        names: Of kernels and copies.
        finds: What the rule looks for, for the docs.
    """

    def find(evidence: Evidence) -> Iterator[Finding]:
        yield from work_findings(evidence, named(evidence.profile, names.search), work)

    return Rule(find, finds, (GPU_TIME,), (MUCH_GPU,), work.change)
