"""A finding in a line: what it saves, what was found, where, and what to change."""

from __future__ import annotations

from pathlib import Path

from bragg.model import Finding
from bragg.model.finding import percent_text
from bragg.views.text.style import printable

OF_RUN = " of the run"
"""What a gain is a share of that is made once, not in each step."""


def finding_line(finding: Finding) -> str:
    """A finding in one line: what it gains, its rule, what was found and where."""
    return f"{gain_text(finding)}  {finding.rule}: {message_text(finding)}{at_place(finding)}"


def gain_text(finding: Finding) -> str:
    """What following a finding gains: a share of the steady state or of steps, or where it says so of the run."""
    if finding.gain is None:
        return "gain n/a" if finding.is_timed else "not timed"
    return f"{percent_text(finding.gain.share)}{OF_RUN * finding.gain.is_once}" if finding.gain.wall_ns else "no gain"


def message_text(finding: Finding) -> str:
    """What was found."""
    return printable(finding.message)


def at_place(finding: Finding) -> str:
    """File and line as they follow a message; empty where there is none."""
    return f" ({place_text(finding)})" if finding.file else ""


def place_text(finding: Finding) -> str:
    """File and line; empty where there is none."""
    return f"{short_path(finding.file)}:{finding.line}" if finding.file else ""


def short_path(file: str) -> str:
    """A path from the package or from here, as editors open it; of others the last three parts."""
    for folder in ("site-packages/", "dist-packages/"):
        if folder in file:
            return printable(file.rpartition(folder)[2])
    here = f"{Path.cwd()}/"
    return printable(file.removeprefix(here) if file.startswith(here) else "/".join(file.split("/")[-3:]))


def advice_text(hint: str) -> str:
    """A hint that introduces itself (`which: ...`) as it is."""
    introduces = ": " in hint and " " not in hint.partition(":")[0]
    return printable(f"{hint[0].upper()}{hint[1:]}" if introduces else f"Change: {hint}")
