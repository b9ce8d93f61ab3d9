from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bragg.analyze import report
from bragg.analyze.causes.bounds import Bounds, Part
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import Need
from bragg.analyze.engine import Analysis
from bragg.analyze.report import Answered
from bragg.model import Confidence, Finding, Profile, Severity
from bragg.model.finding import Gain, Place, Quantity
from bragg.views.web.findings import findings_of, gain_of
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text

PROFILE_TS = Path(__file__).parents[4] / "web/src/data/profile.ts"
FULL = Finding(
    "rule",
    Severity.WARNING,
    "slow",
    "do it",
    node=1,
    kernel="gemm",
    file="/home/me/train.py",
    line=3,
    evidence=(Quantity("launches a step", 573), Quantity("busy", 0.109, "share"), Quantity("wait", 47_000, "ns")),
    places=(Place("a.py", 1, "k", 2),),
    gain=Gain(2e6, 1e7, limit="the host"),
    confidence=Confidence.PROVEN,
    details=(("tensor", "x"),),
)


def answered(*found: Finding) -> Answered:
    bounds = Bounds("the host", 0.1, (Part("launches", 0.9, False),), 1e7, 10, True)
    skipped = {
        "churn": Need("calls of the API", "--gpu-api", lambda _: False),
        "loading": Need("a DataLoader", "", lambda _: False, is_of_program=True),
    }
    evidence = Evidence(profile_from_text("root\n  a 1us"))
    return Answered("run", bounds, Analysis(list(found), ["casts"], skipped), evidence)


def interface(name: str) -> set[str]:
    """The names that an interface of TypeScript has at its top."""
    text = re.search(rf"^export interface {name} {{\n(.*?)^}}", PROFILE_TS.read_text(), re.M | re.S)
    assert text is not None
    return set(re.findall(r"^  (\w+)\??:", text[1], re.M))


def test_the_page_knows_every_name_of_a_finding() -> None:
    (row,) = findings_of(profile_from_text("root\n  a 1us"), answered(FULL), None)["rows"]
    assert set(row) == interface("Finding")
    assert {field.name for field in dataclasses.fields(Finding)} <= set(row)
    assert set(row["places"][0]) == interface("Place")


def test_a_finding_is_what_analyze_prints_with_its_numbers_in_words() -> None:
    found = findings_of(profile_from_text("root\n  a 1us"), answered(FULL), None)
    (row,) = found["rows"]
    assert {name: row[name] for name in ("rule", "severity", "message", "hint", "confidence", "at")} == {
        "rule": "rule",
        "severity": "warning",
        "message": "slow",
        "hint": "do it",
        "confidence": "proven",
        "at": "home/me/train.py:3",
    }
    assert (row["gainText"], row["gainOf"], row["gain"]["limit"]) == ("20 %", "of the steady state", "the host")
    assert row["numbers"] == [("launches a step", "573"), ("busy", "10.9 %"), ("wait", "47.0 us"), ("tensor", "x")]
    assert found["sentence"].startswith("The host bounds the program: in 10 steps of 1.00 ms")
    assert found["fine"] == ["casts"]
    assert found["skipped"] == [{"missing": "calls of the API", "command": "bragg run --gpu-api", "rules": ["churn"]}]


@pytest.mark.parametrize(("of_ns", "said"), [(1e7, "of the host's time"), (4e6, "of the steps")])
def test_a_gain_without_a_gpu_is_a_share_of_all_time_or_of_the_steps(of_ns: float, said: str) -> None:
    finding = replace(FULL, gain=Gain(2e6, of_ns))
    told = answered(finding)
    told = replace(told, bounds=replace(told.bounds, host_ns=1e7))
    assert gain_of(told, finding) == said


def test_small_gains_come_folded() -> None:
    small = replace(FULL, gain=Gain(1, 1e7))
    rows = findings_of(profile_from_text("root\n  a 1us"), answered(FULL, small), None)["rows"]
    assert [row["isWorth"] for row in rows] == [True, False]


def test_the_slice_of_a_finding_is_the_longest_one_of_the_steady_state() -> None:
    trace = trace_from_text("thread 1\n  0-50 step\n  60-80 step\n  80-90 step")
    node = next(row for row, frame in enumerate(trace.tree.frame) if trace.tree.frames.name[frame] == "step")

    def slice_of(profile: Profile, steady: tuple[int, int] | None, at: int | None = node) -> int | None:
        return findings_of(profile, answered(replace(FULL, node=at)), steady)["rows"][0]["slice"]

    first_ns = int(trace.slices.start_ns.min())
    assert slice_of(trace, None) == 0
    assert slice_of(trace, (first_ns + 55, first_ns + 90)) == 1
    assert slice_of(trace, (first_ns + 1000, first_ns + 2000)) == 0
    assert slice_of(trace, None, at=None) is None


def test_without_a_gpu_no_recording_is_asked_for() -> None:
    profile = profile_from_text("root\n  main host=3ms")
    found = findings_of(profile, report.answered(profile), None)
    assert found["sentence"].startswith("Python and native code bound the program, which uses no GPU")
    assert found["nothing"].startswith("No rule found a cause")
    assert (found["skipped"], found["parts"]) == ([], [])
