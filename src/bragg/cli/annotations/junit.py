"""JUnit's XML, which servers of continuous integration read.

A test case is a kernel that nothing was found in, or one finding.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from bragg.cli.annotations.outcome import Outcome, message_of, text_of
from bragg.debug.findings import KernelFinding
from bragg.views.text.style import printable


def lines(outcome: Outcome) -> list[str]:
    """The document."""
    findings = outcome.report.findings
    wrong = {finding.kernel for finding in findings}
    clean = [name for name in outcome.report.verdicts.kernels() if name not in wrong]
    errors = 1 if outcome.problem else 0
    counts = f'tests="{len(clean) + len(findings) + errors}" failures="{len(findings)}" errors="{errors}" skipped="0"'
    document = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'<testsuite name="bragg check" {counts}>',
        *(f'<testcase classname="bragg check" name={_attribute(name)}/>' for name in clean),
        *(line for finding in findings for line in _failed(finding, outcome)),
        *(_unfinished(outcome.problem) if outcome.problem else ()),
        "</testsuite>",
        "</testsuites>",
    ]
    # Whatever encoding the reader takes it for, ASCII is the same.
    return [line.encode("ascii", "xmlcharrefreplace").decode() for line in document]


def _failed(finding: KernelFinding, outcome: Outcome) -> list[str]:
    file, line = outcome.relative(finding.file).as_posix(), finding.line
    name = f"{finding.kernel}: {finding.rule} at {file}:{line}"
    return [
        f'<testcase classname="bragg check" name={_attribute(name)} file={_attribute(file)} line="{line}">',
        f"<failure type={_attribute(finding.rule)} message={_attribute(message_of(finding))}>",
        *escape(text_of(finding)).splitlines(),
        "</failure>",
        "</testcase>",
    ]


def _unfinished(problem: str) -> list[str]:
    return [
        '<testcase classname="bragg check" name="everything was checked">',
        f"<error message={_attribute(problem)}/>",
        "</testcase>",
    ]


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
