"""What an analysis says of one profile: what bounds it, and the findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bragg.analyze.causes.bounds import Bounds, bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import Analysis, analysis
from bragg.model import Finding, Profile


@dataclass(frozen=True)
class Answered:
    """The whole answer.

    Attributes:
        name: Of the profile.
        bounds: What bounds the program.
        analysis: What the rules say.
        evidence: What both rest on.
    """

    name: str
    bounds: Bounds
    analysis: Analysis
    evidence: Evidence = field(repr=False)

    def worth(self, least_gain: float) -> list[Finding]:
        """The findings that save at least a share of the wall time, and those whose gain is not known."""
        return [each for each in self.analysis.findings if each.is_worth(least_gain)]

    def code_of(self, finding: Finding) -> str:
        """The text of the line that a finding names; empty where the profile does not have it."""
        return self.evidence.profile.line_text(finding.file, finding.line)

    def to_json(self, least_gain: float) -> dict[str, Any]:
        """JSON values."""
        return {
            "file": self.name,
            "bounds": asdict(self.bounds),
            "findings": [finding_json(finding, self.code_of(finding)) for finding in self.worth(least_gain)],
            "fine": self.analysis.fine,
            "skipped": {
                rule: {"missing": need.what, "option": need.option} for rule, need in self.analysis.skipped.items()
            },
        }


def finding_json(finding: Finding, code: str = "") -> dict[str, Any]:
    """A finding with names instead of numbers, the share that it gains, and the text of its line where it is known."""
    values = {**finding.to_json(), **({"code": code} if code else {})}
    values["severity"], values["confidence"] = finding.severity.name.lower(), finding.confidence.name.lower()
    if finding.gain is not None:
        values["gain"]["share"] = finding.gain.share
    return values


def answered(profile: Profile, rules: Sequence[str] = (), *, name: str = "") -> Answered:
    """The answer of all rules, or of those that are named.

    Raises:
        UsageError: There is no such rule.
    """
    return answered_by(Evidence(profile), rules, name=name)


def answered_by(evidence: Evidence, rules: Sequence[str] = (), *, name: str = "") -> Answered:
    """The same by facts of a profile, some of which may be computed already."""
    return Answered(name, bounds_of(evidence), analysis(evidence, rules), evidence)


def findings_of(profile: Profile) -> list[Finding]:
    """What the rules find in a profile, by gain, and what checks added to it."""
    return answered(profile).analysis.findings
