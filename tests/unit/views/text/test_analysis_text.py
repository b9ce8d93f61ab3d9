"""What an analysis says, in lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bragg.analyze.causes.bounds import Bounds, ForTarget, bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import Need
from bragg.analyze.causes.work_finding import OF_KERNEL, SHARE_OF_GPU
from bragg.analyze.engine import Analysis, ranked
from bragg.analyze.report import Answered, answered
from bragg.model import Finding, Gain, Quantity, Severity
from bragg.model.finding import COMPILED_FOR
from bragg.views.terminal.story import answer_lines
from bragg.views.text.analysis_formats import markdown_lines
from bragg.views.text.analysis_text import analysis_lines, best_findings, best_lines
from bragg.views.text.bounds_text import bounds_sentence
from bragg.views.text.finding_text import short_path
from bragg.views.text.style import PLAIN, Style
from tests.support.profiles import profile_from_text


def test_files_below_the_working_directory_are_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert short_path(f"{tmp_path}/a/b/c/train.py") == "a/b/c/train.py"
    assert short_path("/home/me/a/b/train.py") == "a/b/train.py"
    assert short_path("/usr/lib/site-packages/torch/nn/linear.py") == "torch/nn/linear.py"


def behind_the_host(rule: str, of_gpu: float, limit: str = "the host") -> Finding:
    share = Quantity(SHARE_OF_GPU, of_gpu, "share")
    return Finding(rule, Severity.WARNING, rule, file="a.py", line=3, evidence=(share,), gain=Gain(1, 1000, limit))


@pytest.mark.parametrize(
    ("findings", "says"),
    [
        (
            [behind_the_host("type-copies", 0.06), behind_the_host("layout-conversions", 0.1)],
            ["Next, once the host keeps up: layout-conversions, 10 % of the GPU time (a.py:3)"],
        ),
        ([behind_the_host("type-copies", 0.02)], []),
        ([behind_the_host("type-copies", 0.3, "the busiest GPU")], []),
    ],
)
def test_what_comes_next_is_said_in_a_line(findings: list[Finding], says: list[str]) -> None:
    bounds = Bounds("the host", 0.1, (), 1000.0, 1, True)
    answer = Answered("a.bragg", bounds, Analysis(findings), Evidence(profile_from_text("root\n  k 1ms")))
    lines = analysis_lines(answer, PLAIN)
    assert [line for line in lines if line.startswith("Next")] == says


def test_what_comes_next_is_not_said_to_gain_nothing() -> None:
    findings = [
        replace(behind_the_host(rule, share), gain=Gain(0, 1000, "the host"))
        for rule, share in (("tf32-products", 0.4), ("type-copies", 0.1))
    ]
    bounds = Bounds("the host", 0.1, (), 1000.0, 1, True)
    answer = Answered("a.bragg", bounds, Analysis(findings), Evidence(profile_from_text("root\n  k 1ms")))
    assert "Found, but a change would save nothing: type-copies" in analysis_lines(answer, PLAIN)


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ((600, 300), ""),
        ((600, 500), "The gains overlap, and do not add up"),
        (
            (300, 600),
            "In this order, since a cause stands before what it explains in part, and what costs precision last",
        ),
    ],
)
def test_gains_of_more_than_all_overlap(shares: tuple[int, int], says: str) -> None:
    findings = [
        replace(behind_the_host(f"rule-{share}", 0.1), gain=Gain(share, 1000), evidence=(), message="slow")
        for share in shares
    ]
    bounds = Bounds("the host", 0.1, (), 1000.0, 1, True)
    answer = Answered("a.bragg", bounds, Analysis(findings), Evidence(profile_from_text("root\n  k 1ms")))
    told = [line for line in analysis_lines(answer, PLAIN) if line.startswith(("In this order", "The gains"))]
    assert told == [says] * bool(says)
    assert [line.strip() for line in best_lines(answer, findings, PLAIN) if line.strip() == says] == told


def test_a_program_that_has_hardly_begun_is_bound_by_nothing() -> None:
    text = """
root
  a.py:1@main host=1ms
    <frozen importlib._bootstrap>:1@_find_and_load host=50ms"""
    assert analysis_lines(answered(profile_from_text(text)), PLAIN)[0] == (
        "Imports took 50.0 ms, and all else that the program did 1.00 ms: too little to say what bounds it."
    )


def test_the_view_of_a_program_without_a_gpu_says_what_bounds_it() -> None:
    profile = profile_from_text("root\n  a.py:1@main host=9ms")
    assert answer_lines(Evidence(profile), PLAIN)[0].startswith(
        "Python and native code bound the program, which uses no GPU: of 9.00 ms on the host after imports, "
    )


def test_what_bounds_a_program_that_hardly_makes_steps_is_not_said_of_its_steps() -> None:
    ends = [1_000_000 * n for n in range(1, 11)]
    kept = {"began_ns": 0, "ends_after_ns": ends, "last_ns": 10_000_000}
    step = {"count": 10, "total_ns": 10_000_000, "in_steps_ns": 10_000_000, "buckets": {}, "first_calls": kept}
    text = "root\n  a.py:1@main host=200ms\n    [compile] jit_f host=800ms hostx1"
    profile = replace(profile_from_text(text), meta={"regions": {"step": step}})
    assert bounds_sentence(bounds_of(Evidence(profile))) == (
        "Compilation bounds the program, which uses no GPU: of 1.00 s on the host after imports, compilation takes "
        "80 % (most at a.py:1), Python and native code 20 % (most at a.py:1). "
        "The 10 steps of 1.00 ms took 10.0 ms of it."
    )


def test_shares_of_few_steps_may_be_others_in_a_longer_run() -> None:
    kept = {"began_ns": 0, "ends_after_ns": [1_000_000, 2_000_000], "last_ns": 2_000_000}
    step = {"count": 2, "total_ns": 2_000_000, "in_steps_ns": 2_000_000, "buckets": {}, "first_calls": kept}
    profile = replace(profile_from_text("root\n  a.py:1@main host=12ms"), meta={"regions": {"step": step}})
    assert analysis_lines(answered(profile), PLAIN)[1] == "  Only 2 steps: shares may differ in a longer run."


def test_a_main_thread_that_had_no_core_is_said_before_gains() -> None:
    starved = {"scheduled_before": [0, 0], "scheduled": [1_000_000_000, 3_000_000_000]}
    lines = analysis_lines(answered(replace(profile_from_text("root\n  a.py:1@main host=1s"), meta=starved)), PLAIN)
    assert lines[1] == "  warning: the main thread waited 3.00 s for a core"


def test_what_the_program_lacks_is_not_missed_in_the_recording() -> None:
    needs = {
        "loading": Need("a DataLoader", "", lambda _: False, is_of_program=True),
        "waits": Need("a timeline", "--data trace", lambda _: False),
        "unused": Need("counts of autograd", "", lambda _: False),
    }
    bounds = Bounds("the GPU", 1.0, (), 1000.0, 0, True)
    answer = Answered("a.bragg", bounds, Analysis([], [], needs), Evidence(profile_from_text("root\n  k 1ms")))
    assert analysis_lines(answer, PLAIN)[-2:] == [
        "More rules could judge a recording with --data trace",
        "Could not judge: unused, without counts of autograd",
    ]


TEXT = "import torch\n\tfor row in rows:\x1b[2J  # `a | b`\n"
SLOW = Finding("slow", Severity.WARNING, "slow", "less", file="a.py", line=2, gain=Gain(500, 1000))


def answer_of(*findings: Finding, sources: dict[str, str]) -> Answered:
    profile = replace(profile_from_text("root\n  k 1ms"), sources=sources)
    return Answered("a.bragg", Bounds("the GPU", 1.0, (), 1000.0, 0, True), Analysis(list(findings)), Evidence(profile))


def test_a_finding_stands_beside_the_text_of_its_line() -> None:
    answer = answer_of(SLOW, sources={"a.py": TEXT})
    code = "   a.py:2  for row in rows:\\x1b[2J  # `a | b`"
    lines = analysis_lines(answer, PLAIN)
    assert lines[1:4] == ["1. saves 50 % of the steady state (500 ns)  slow, likely", "   slow", code]
    assert f"        {code}" in list(best_lines(answer, [SLOW], PLAIN, 1))
    assert "     50 %  slow (a.py:2)" in list(best_lines(answer, [SLOW], PLAIN))
    (cut,) = (line for line in analysis_lines(answer, Style(width=30)) if line.startswith("   a.py:2"))
    assert (len(cut), "…" in cut) == (30, True)


@pytest.mark.parametrize("sources", [{}, {"a.py": "import torch"}, {"b.py": TEXT}])
def test_a_finding_whose_line_is_not_kept_names_it(sources: dict[str, str]) -> None:
    assert "   slow (a.py:2)" in analysis_lines(answer_of(SLOW, sources=sources), PLAIN)


def test_texts_of_lines_make_room_for_findings() -> None:
    long = [replace(SLOW, rule=f"slow{n}", message=f"{n} {'word ' * 40}".strip(), line=n) for n in range(1, 7)]
    lines = analysis_lines(answer_of(*long, sources={"a.py": "x = 1\n" * 9}), Style(width=80))
    assert len(lines) <= 25
    n_shown = sum(line[:1].isdecimal() and line[1:2] == "." for line in lines)
    n_codes = sum(line.startswith("   a.py:") for line in lines)
    assert (n_shown, n_codes) == (4, 1)
    few = analysis_lines(answer_of(*long[:3], sources={"a.py": "x = 1\n" * 9}), Style(width=80))
    assert [line for line in few if line.startswith("   a.py:")] == [f"   a.py:{n}  x = 1" for n in (1, 2, 3)]


def test_markdown_has_the_text_of_the_line() -> None:
    row = list(markdown_lines(answer_of(SLOW, sources={"a.py": TEXT}), 0.01))[-2]
    assert "| a.py:2 `` for row in rows:\\x1b[2J  # `a \\| b` `` |" in row


def test_what_is_expected_of_kernels_stands_before_what_the_host_did_in_place_of_a_gpu() -> None:
    def of_kernel(rule: str, saved: float) -> Finding:
        share = Quantity(OF_KERNEL, saved, "share")
        return Finding(rule, Severity.WARNING, rule, evidence=(share,), details=((COMPILED_FOR, "sm_90"),))

    host = Finding("serialization", Severity.WARNING, "lines are printed", gain=Gain(500, 1000))
    bounds = Bounds("output", None, (), 1000.0, 0, False, host_ns=1000.0, for_target=ForTarget("sm_90", 1, 1))
    found = ranked([host, of_kernel("narrow-access", 0.15), of_kernel("single-loads", 0.9)])
    answer = Answered("a.bragg", bounds, Analysis(found), Evidence(profile_from_text("root\n  k host=1ms")))
    assert [each.rule for each in found] == ["single-loads", "narrow-access", "serialization"]
    assert [each.rule for each in best_findings(answer, 3)] == ["single-loads", "narrow-access"]
    heads = [line for line in analysis_lines(answer, PLAIN) if line[:1].isdigit()]
    assert heads[0] == "1. not timed  single-loads, likely"
    assert heads[2].startswith("3. saves 50 %")
