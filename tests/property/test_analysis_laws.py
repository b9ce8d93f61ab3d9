"""Laws of what the analysis says, on random programs of equal steps and on random profiles."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bragg.analyze.report import Answered, answered
from bragg.model import IdleTable, Profile, SliceTable
from tests.support.profiles import profile_from_text
from tests.support.random_profiles import profiles
from tests.support.stepped import stepped

# What a step is made of: name of the kernel or copy, and of the operator that launches it.
_WORK = (
    ("aten::mm", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n#kernel"),
    ("aten::add", "at::native::vectorized_elementwise_kernel<4>#kernel"),
    ("aten::copy_", "copy HtoD#memory"),
    ("aten::cat", "CatArrayBatchedCopy#kernel"),
    ("aten::item > aten::_local_scalar_dense", "copy DtoH#memory"),
)


@st.composite
def steps(draw: st.DrawFn) -> tuple[list[tuple[int, int, int]], int]:
    """Which work a step has, how long its launch and itself take, and how long the host does other things, in us."""
    work = st.tuples(st.integers(0, len(_WORK) - 1), st.integers(5, 60), st.integers(5, 90))
    return draw(st.lists(work, min_size=1, max_size=5)), draw(st.integers(5, 300))


def program(step: tuple[list[tuple[int, int, int]], int], scale: int = 1, names: str = "") -> Profile:
    """The profile of a program of 20 such steps."""
    lines, host, gpu = [], 0, 0
    for at, (kind, launch, lasts) in enumerate(step[0], 1):
        operator, kernel = _WORK[kind]
        path = f"{names}train.py:{at}@{names}main > {operator}#operator"
        begins = max(gpu, host + launch)
        gpu = begins + lasts
        lines.append(f"host {host * scale}-{(host + launch) * scale} {path} ->{at}")
        lines.append(f"gpu {begins * scale}-{gpu * scale} {path} > {kernel} <-{at}")
        host = gpu if "scalar" in operator else host + launch
    return stepped("\n".join(lines), (max(host, gpu) + step[1] + 1) * scale)


def check(answer: Answered) -> None:
    """What no answer may contradict."""
    parts = answer.bounds.parts
    assert all(0 <= part.share <= 1 + 1e-9 for part in parts)
    assert not parts or math.isclose(sum(part.share for part in parts), 1, abs_tol=1e-6)
    for finding in answer.analysis.findings:
        assert finding.hint
        assert finding.evidence
        assert finding.gain is None or 0 <= finding.gain.wall_ns <= finding.gain.of_ns
        for each in finding.evidence:
            assert math.isfinite(each.value)
            assert each.value >= 0
            assert each.unit != "share" or each.value <= 1 + 1e-9
    told = [*answer.analysis.fine, *answer.analysis.skipped]
    assert not {each.rule for each in answer.analysis.findings} & set(told)
    assert len(set(told)) == len(told)


@given(steps())
@settings(max_examples=15, deadline=None)
def test_shares_add_up_and_gains_are_within_what_bounds_them(step: tuple[list[tuple[int, int, int]], int]) -> None:
    check(answered(program(step)))


@given(steps())
@settings(max_examples=8, deadline=None)
def test_names_of_files_and_functions_change_nothing(step: tuple[list[tuple[int, int, int]], int]) -> None:
    plain, renamed = (answered(program(step, names=names)) for names in ("", "other_"))
    assert plain.bounds == renamed.bounds
    assert [(each.rule, each.line, each.gain) for each in plain.analysis.findings] == [
        (each.rule, each.line, each.gain) for each in renamed.analysis.findings
    ]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(5, 9), st.integers(10, 90)), min_size=1, max_size=5),
    st.integers(2, 4),
)
@example([(0, 6, 17)], 2)
@settings(max_examples=15, deadline=None)
def test_the_order_of_findings_is_that_of_a_slower_machine(work: list[tuple[int, int, int]], scale: int) -> None:
    """Of a GPU whose work is launched ahead; thresholds in time may add findings, take them away, or limit a gain."""
    now, slower = (
        {each.rule: each.gain for each in answered(program((work, 5), factor)).analysis.findings}
        for factor in (1, scale)
    )
    for first, second in itertools.pairwise([rule for rule in now if rule in slower]):
        gains = [found[rule] for found in (now, slower) for rule in (first, second)]
        shares = [gain.share for gain in gains if gain is not None and not gain.limit]
        if len(shares) == 4 and shares[0] > 2 * shares[1]:
            assert shares[2] >= shares[3]


@given(profiles())
@settings(max_examples=25, deadline=None)
def test_whatever_was_recorded_is_judged_without_contradictions(profile: Profile) -> None:
    check(answered(profile))


@pytest.mark.parametrize("text", ["root", "root\n  main\n    step 5ms"])
def test_a_program_without_work_of_a_gpu_has_no_finding(text: str) -> None:
    answer = answered(profile_from_text(text))
    assert answer.analysis.findings == []
    assert answer.bounds.by == ""


def test_without_metrics_and_timeline_nothing_is_found() -> None:
    profile = program(([(0, 10, 90)], 10))
    bare = replace(profile, metrics={}, slices=SliceTable.empty(), idle=IdleTable.empty())
    assert answered(bare).analysis.findings == []
