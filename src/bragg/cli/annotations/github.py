"""Workflow commands, which GitHub shows beside the lines of a change.

Source: docs.github.com, "Workflow commands for GitHub Actions"; its toolkit escapes the same letters.
"""

from __future__ import annotations

from bragg.cli.annotations.outcome import Outcome, message_of
from bragg.model import Severity
from bragg.views.text.style import printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def lines(outcome: Outcome) -> list[str]:
    """A command for each finding, and one for what was not checked."""
    found = [
        f"::{_COMMANDS[finding.severity]} "
        f"file={_property(outcome.relative(finding.file).as_posix())},line={max(finding.line, 1)},"
        f"title={_property(finding.rule)}::{_data(message_of(finding))}"
        for finding in outcome.report
    ]
    return [*found, f"::error title=bragg check::{_data(printable(outcome.problem))}"] if outcome.problem else found


def _property(text: str) -> str:
    return "".join(_PROPERTY.get(letter, letter) for letter in printable(text))


def _data(text: str) -> str:
    return "".join(_DATA.get(letter, letter) for letter in text)
