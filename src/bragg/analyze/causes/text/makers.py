"""Findings where what a line calls was made: options that are given there decide."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.paths import line_above
from bragg.analyze.causes.text.program_text import FileText
from bragg.code.python_nodes import parts_of
from bragg.model import Finding, Place


def moved_to_makers(
    evidence: Evidence, finding: Finding, makers: Callable[[FileText, ast.Call], Iterable[ast.Call]]
) -> Finding:
    """The finding at the lines that make what its line calls; where it is, if they are not known.

    Args:
        evidence: Of the profile.
        finding: At a line of the program.
        makers: Of a call in that line, what makes what it calls.
    """
    line = None if finding.node is None else line_above(evidence.profile, finding.node)
    at = None if line is None else evidence.text.at(line)
    if at is None:
        return finding
    made = ({each.lineno for each in makers(at[0], call)} for call in parts_of(at[1], ast.Call))
    lines = sorted({lines.pop() for lines in made if len(lines) == 1})
    return moved_to(finding, [Place(finding.file, each, node=finding.node) for each in lines])
