"""Jitted functions of JAX that are given arrays of NumPy at each call."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import stepped

CALL = "train.py:20@main > jit(step)#operator"
COPY = f"{CALL} > copy HtoD#memory"
WORK = "gpu 400-500 {0} > gemm#kernel"


@pytest.mark.parametrize(("each_us", "n_copies", "is_told"), [(150, 1, True), (30, 6, True), (2, 6, False)])
def test_copies_of_a_call_are_found_however_many_they_are(each_us: int, n_copies: int, is_told: bool) -> None:
    copies = "\n".join(f"gpu {10 + at * each_us}-{10 + (at + 1) * each_us} {COPY}" for at in range(n_copies))
    profile = stepped(f"host 0-10 {CALL}\n{copies}\n{WORK.format(CALL)}", 510)
    found = analysis(Evidence(profile), ["pageable-copies"]).findings
    assert [(each.rule, each.line) for each in found] == [("pageable-copies", 20)] * is_told


def test_what_the_host_does_beside_copying_is_not_gained() -> None:
    text = f"host 0-9000 {CALL} ->1\ngpu 9000-9150 {COPY} <-1\ngpu 9150-9900 {CALL} > gemm#kernel"
    (finding,) = analysis(Evidence(stepped(text, 10_000)), ["pageable-copies"]).findings
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.9 * (150 + 15 * 150 + 100) / 10_000, rel=0.05)
