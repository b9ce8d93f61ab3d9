"""Functions that torch.compile compiles again, for other shapes, types or values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.engine import Rule, Subject
from bragg.grouping.compiled_regions import COMPILED_REGION
from bragg.model import Confidence, Finding, Quantity, Severity

__all__ = ["RULE"]

# The second compilation makes sizes symbolic; a third one is for another reason.
_OFTEN = 3
_REGION = re.compile(rf"{COMPILED_REGION}(?:(?P<what>.+) \()?(?P<frame>\d+)/(?P<version>\d+)\)?")


def _find(evidence: Evidence) -> Iterator[Finding]:
    versions: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    for name in evidence.profile.tree.frames.name:
        if match := _REGION.fullmatch(name):
            versions[match["frame"]].add(match["version"])
            shown[match["frame"]] = match["what"] or f"region {match['frame']}"
    for frame, found in versions.items():
        if len(found) < _OFTEN:
            continue
        yield Finding(
            "torch-recompilation",
            Severity.WARNING,
            f"{shown[frame]} was compiled {len(found)} times",
            "torch.compile(dynamic=True), or pad shapes; why: TORCH_LOGS=recompiles",
            evidence=(Quantity("compilations", len(found)),),
            confidence=Confidence.PROVEN,
        )


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "functions that torch.compile compiles again and again",
    (OPERATORS,),
    (),
    "torch.compile(dynamic=True), or pad shapes",
)
