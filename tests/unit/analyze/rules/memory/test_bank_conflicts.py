"""Bank conflicts that were counted decide, whatever the code of a kernel lets expect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Confidence, Finding, Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text

PROGRAM = "root\n  train.py:5@step\n    transpose 5us @0\n    gemm 5us @0"


def counted(profile: Profile, kernel: str, added: int) -> list[Finding]:
    """What is found where so many of 1,000 wavefronts of a kernel are those of conflicts."""
    names = [profile.tree.frames.name[frame] for frame in profile.tree.frame]
    metrics = {
        f"l1tex__data_{part}.sum": Metric(
            f"l1tex__data_{part}.sum", "1", MetricKind.INCLUSIVE, np.array([value * (name == kernel) for name in names])
        )
        for part, value in (
            ("pipe_lsu_wavefronts_mem_shared", 1000),
            ("bank_conflicts_pipe_lsu_mem_shared", added),
        )
    }
    return analysis(Evidence(replace(profile, metrics={**profile.metrics, **metrics})), ["bank-conflicts"]).findings


def test_counted_conflicts_of_a_kernel_without_code_are_found_where_it_is_launched() -> None:
    (finding,) = counted(profile_from_text(PROGRAM), "transpose", 750)
    assert finding.message.startswith("transpose waits for bank conflicts in 75 % of its accesses of shared memory")
    assert (finding.file, finding.line, finding.confidence) == ("train.py", 5, Confidence.LIKELY)
    assert finding.evidence[0].name == "wavefronts that conflicts add"
    assert finding.evidence[0].value == 0.75


@pytest.mark.parametrize("added", [0, 299])
def test_few_counted_conflicts_are_fine(added: int) -> None:
    assert counted(profile_from_text(PROGRAM), "transpose", added) == []


def test_what_was_counted_beats_what_the_code_lets_expect() -> None:
    pytest.importorskip("triton")
    from tests.support.compiled_variants import profile_of
    from tests.support.kernel_pairs import PAIRS

    broken = next(pair.broken for pair in PAIRS if pair.rule == "bank-conflicts")
    profile = profile_of(broken)
    assert counted(profile, broken.name, 10) == []
    (finding,) = counted(profile, broken.name, 800)
    assert "8 lanes of a warp in one bank" in finding.message
    assert finding.confidence == Confidence.LIKELY
    assert 0.8 in [each.value for each in finding.evidence if each.name == "wavefronts that conflicts add"]
