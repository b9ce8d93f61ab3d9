"""The statement that holds most of a weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.statements import statement, statement_finding
from bragg.model import Confidence, FrameKind, Metric, MetricKind
from tests.support.stepped import stepped

BEGINS = "train.py:30@<module> > train.py:20@main > aten::randn#operator"
LOOP = "train.py:30@<module> > train.py:22@main"
ADDS = "train.py:30@<module> > train.py:23@main > aten::add_#operator"
STEP = f"{LOOP} > train.py:10@forward > train.py:{{}}@layer > aten::mm#operator"


def evidence_of(*weights: tuple[str, int]) -> tuple[Evidence, np.ndarray, np.ndarray]:
    """A program that begins with one call of an operator; calls of the others take so many us in each step."""
    at, lines = 10, [f"host 0-1 {BEGINS}"]
    for path, lasts in weights:
        lines.append(f"host {at}-{at + lasts} {path}")
        at += lasts
    profile = stepped("\n".join(lines), 1000)
    operators = profile.tree.kind == FrameKind.OPERATOR
    begins = np.array([profile.tree.label(node) == "aten::randn" for node in range(len(profile.tree))])
    counts = np.where(begins, 1, np.where(operators, 20, 0))
    count = Metric("host_count", "1", MetricKind.EXCLUSIVE, counts)
    profile = replace(profile, metrics={**profile.metrics, "host_count": count})
    return Evidence(profile), operators & ~begins, np.nan_to_num(profile.own("host_time").astype(np.float64))


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ([(STEP.format(3), 90), (STEP.format(4), 10)], 3),  # one line holds most
        ([(STEP.format(3), 50), (STEP.format(4), 50)], 10),  # the call that holds both, not main()
        ([(STEP.format(3), 40), (STEP.format(4), 30), (ADDS, 30)], 10),  # that of the heaviest line of main()
        ([("/lib/python3.12/a.py:3@f > aten::mm#operator", 50)], 0),
    ],
)
def test_the_statement_is_the_innermost_that_holds_most(weights: list[tuple[str, int]], line: int) -> None:
    evidence, nodes, weight = evidence_of(*weights)
    assert [place.line for place in statement(evidence, nodes & (weight > 5000), weight)][:1] == [line][: line > 0]


def test_its_other_places_are_the_lines_below_it_and_its_callers() -> None:
    evidence, nodes, weight = evidence_of((STEP.format(3), 50), (STEP.format(4), 40))
    cause = Cause("many-launches", "what", "change", None, Confidence.LIKELY)
    finding = statement_finding(evidence, nodes & (weight > 5000), weight, cause)
    assert [finding.line, *(place.line for place in finding.places)] == [10, 3, 4, 22]
