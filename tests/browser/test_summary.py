"""The summary: what was found, what is not known, and where a click leads; and that the guard of these tests guards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg.model import Metric, MetricKind, Profile, Severity
from bragg.model.finding import Finding
from tests.support.profiles import profile_from_text
from tests.support.waiting import beginning, expect, expect_value
from tests.support.work import H200


def profile() -> Profile:
    """Two kernels with flops and bytes, and two findings."""
    found = profile_from_text("root\n  step\n    matmul 30us x3 @0\n    copy_kernel 10us x1 @0")
    work = {"flops16": [0, 0, 2e10, 1.0], "bytes": [0, 0, 1e6, 4e7]}
    added = {name: Metric(name, "1", MetricKind.INCLUSIVE, np.array(values)) for name, values in work.items()}
    findings = [
        Finding("uncoalesced", Severity.WARNING, "copy_kernel reads <every> second byte", "Transpose it", node=3),
        Finding("note", Severity.NOTE, "the clock was low"),
    ]
    return replace(found, meta={"devices": [H200]}, metrics={**found.metrics, **added}, carried=findings)


def test_first_sentence_says_what_kernels_are_bound_by(pages: Any) -> None:
    sentence = pages.open(profile()).locator(".answer li").first
    expect(sentence).to_have_text(beginning("matmul took 75.0 % of 40.0 us of GPU time and copy_kernel 25.0 %"))
    expect(sentence).to_contain_text("75.0 % is in compute-bound kernels")


def test_findings_lead_to_their_call_path(pages: Any) -> None:
    page = pages.open(profile())
    page.locator("nav").get_by_role("link", name="Findings").click()
    findings = page.locator(".findings .finding")
    assert [item.get_attribute("data-severity") for item in findings.all()] == ["warning", "note"]
    expect(findings.first).to_contain_text("copy_kernel reads <every> second byte")
    expect(findings.first).to_contain_text("Transpose it")
    findings.first.get_by_role("button").click()
    expect(page.locator(".flame .detail strong")).to_have_text("copy_kernel")


def test_what_is_not_known_comes_with_the_way_to_know_it(pages: Any) -> None:
    lacks = pages.open(profile()).locator(".lacks li")
    expect(lacks).to_have_text(["No timeline was recorded: bragg run --data trace."])


@pytest.mark.parametrize(
    "script",
    [
        "new Image().src = 'https://example.org/x.png'",
        "console.error('bad')",
        "setTimeout(() => { throw Error('late') })",
    ],
    ids=["request", "console", "error"],
)
def test_guard_notes_what_goes_wrong(pages: Any, tmp_path: Path, script: str) -> None:
    file = tmp_path / "bad.html"
    file.write_text(f"<main class='view'>x</main><script>{script}</script>")
    page = pages.open(file)
    expect_value(lambda: page.evaluate("1") and len(pages.problems), lambda count: count >= 1)
    pages.problems.clear()
