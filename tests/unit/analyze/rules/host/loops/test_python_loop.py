"""Loops of Python in programs without a GPU, by where samples fall and by the text of the program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Metric, MetricKind
from bragg.model.host_time import WAIT_TIME
from tests.support.profiles import profile_from_text

SUMS = """\
def matmul(a, b):
    for i in range(n):
        for p in range(k):
            t += a[i][p] * b[p][j]
"""
STENCIL = """\
def grid(a):
    for i in range(1, n):
        for j in range(1, n):
            out[i, j] = a[i - 1, j] + math.sqrt(a[i, j - 1])
out = np.zeros((300, 300))
"""
HEADS = STENCIL.replace("(300, 300)", "(8, 16, 64, 64)")
UNKNOWN = STENCIL.replace("np.zeros((300, 300))", "np.load(path)")
READS = """\
def count(file):
    n = 0
    for line in read(file):
        n += len(line)
"""
NAPS = """\
def naps():
    t = 0
    for i in range(9):
        time.sleep(0.001); t += i
"""


def found(text: str, turns: int, body: int, other: int = 0, waited: int = 0) -> list[Finding]:
    """Of a program whose loop at line 3 has so many ms in its two lines, and others elsewhere."""
    lines = f"root\n  nb.py:3@f host={turns}ms\n  nb.py:4@f host={body}ms\n  nb.py:9@g host={other}ms"
    profile = profile_from_text(lines)
    own = profile.own("host_time")
    line = profile.tree.frames.line[profile.tree.frame]
    metrics = {
        **profile.metrics,
        "samples": Metric("samples", "1", MetricKind.EXCLUSIVE, own // 1_000_000),
        WAIT_TIME: Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, np.where(line == 4, waited * 1_000_000, 0)),
    }
    profile = replace(profile, metrics=metrics, sources={"nb.py": text})
    return analysis(Evidence(profile), ["python-loop"]).findings


def test_a_loop_with_short_turns_is_found_at_its_hottest_line() -> None:
    (finding,) = found(SUMS, 80, 560, 10)
    assert (finding.file, finding.line) == ("nb.py", 4)
    assert finding.message == (
        "a loop of Python does little in each turn, and takes 98 % of the host's time, "
        "going to the next turn alone 12 %"
    )
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.9 * 640 / 650)


@pytest.mark.parametrize(("text", "turns"), [(STENCIL, 0), (STENCIL, 1)])
def test_a_loop_over_elements_of_arrays_is_found_by_its_text(text: str, turns: int) -> None:
    (finding,) = found(text, turns, 600)
    assert (finding.file, finding.line) == ("nb.py", 4)
    assert finding.message == "a loop of Python computes one element of an array in each turn, and takes " + (
        "100 % of the host's time"
    )


def test_where_dimensions_are_not_known_samples_of_the_next_turn_tell_that_turns_are_short() -> None:
    (finding,) = found(UNKNOWN, 20, 2000)
    assert finding.message.endswith("takes 100 % of the host's time, going to the next turn alone 1.0 %")


@pytest.mark.parametrize(
    ("text", "turns", "body", "other", "waited"),
    [
        (SUMS, 1, 600, 0, 0),  # a turn is long: native code computes in it
        (SUMS, 8, 60, 0, 0),  # too few samples
        (SUMS, 80, 560, 2000, 0),  # most of the time is elsewhere
        (SUMS, 500, 60, 0, 0),  # what gives the turns their values computes
        (STENCIL, 0, 9, 0, 0),  # too few samples
        (STENCIL, 1, 600, 2000, 0),
        (HEADS, 1, 6000, 0, 0),  # a turn computes a matrix
        (UNKNOWN, 20, 6000, 0, 0),  # a turn is long
        (READS, 80, 560, 0, 0),
        (NAPS, 80, 560, 0, 560),
        ("", 80, 560, 0, 0),
    ],
)
def test_other_loops_are_left_alone(text: str, turns: int, body: int, other: int, waited: int) -> None:
    assert found(text, turns, body, other, waited) == []
