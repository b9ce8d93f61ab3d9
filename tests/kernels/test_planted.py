"""Every planted bug is found: by its checker, at its line, for its tensor and in its programs."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.findings import KernelFinding
from bragg.debug.report import Report
from bragg.registry import CHECKERS

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

from tests.kernels.examples import DOCUMENT, rewritten
from tests.kernels.planted import PLANTED

# The compiler, which asks for bank conflicts need, may warn of itself.
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_")


def report_of(name: str) -> Report:
    case = PLANTED[name]
    off = {checker.name for checker in CHECKERS.values() if not checker.is_default}
    with bragg.debug.check(add=[case.rule] if case.rule in off else []) as report, suppress(KernelFault):
        case.launch()
    return report


def places(finding: KernelFinding) -> dict[tuple[str, int], str]:
    """Lines that a finding blames, with their code: its own, of a race both."""
    rival = finding.other if finding.rule == "data-race" else None
    other = {(rival["file"], rival["line"]): rival["code"]} if rival else {}
    return {**other, (finding.file, finding.line): finding.code}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name: str) -> None:
    case, report = PLANTED[name], report_of(name)
    found = [finding for finding in report if finding.rule == case.rule and (case.file, case.line) in places(finding)]
    assert found, report.lines()
    assert {finding.kernel for finding in found} == {case.kernel}
    assert {finding.tensor.name if finding.tensor else "" for finding in found} == {case.tensor}
    assert all(places(finding)[case.file, case.line].endswith("# bug") and finding.message for finding in found)
    if case.programs is not None:
        assert case.programs in [finding.programs for finding in found]
    if case.rule in ("out-of-bounds", "data-race"):
        assert "proven" not in {one.verdict for one in report.verdicts.counts}


def test_table_has_bugs_for_every_checker() -> None:
    assert len(PLANTED) >= 60
    assert {case.rule for case in PLANTED.values()} == {*CHECKERS, "kernel-fault"}
    assert {Path(case.file).parent.name for case in PLANTED.values()} == {"planted"}


def test_document_lists_every_checker_with_its_example() -> None:
    text = DOCUMENT.read_text()
    names = [*CHECKERS, "kernel-fault"]
    assert re.findall(r"^## ([\w-]+)$", text, re.MULTILINE) == names
    assert re.findall(r"^```python\n# ([\w-]+)$", text, re.MULTILINE) == names
    assert rewritten(text) == text, "Run: python -m tests.kernels.examples"
