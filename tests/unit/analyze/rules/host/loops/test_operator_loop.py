"""Loops that call the same operators for one tensor after the other."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped

AVERAGE = "train.py:20@main > train.py:8@average > {}#operator"
LAYER = "train.py:20@main > /x/torch/nn/modules/module.py:3@_call_impl > " + AVERAGE
MULTIPLIES, ADDS = "aten::mul_", "aten::add_"


def called(n: int, path: str, kernel_us: int = 2, beside: str = "") -> Profile:
    """Two operators, so often in each step, each with a kernel, that the GPU waits for."""
    lines, at = [beside], 0
    for operator in (MULTIPLIES, ADDS) * n:
        each = path.format(operator)
        lines.append(f"host {at}-{at + 20} {each} ->{at + 1}")
        lines.append(f"gpu {at + 25}-{at + 25 + kernel_us} {each} > {operator}_kernel#kernel <-{at + 1}")
        at += max(30, kernel_us)
    return stepped("\n".join(lines), at + 50)


def found(profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), ["operator-loop"]).findings


def test_operators_that_a_loop_calls_for_each_tensor_are_found_at_their_line() -> None:
    (finding,) = found(called(32, AVERAGE))
    assert finding.line == 8
    assert finding.message.startswith("a loop calls the same operators 32 times, for one tensor after the other")
    assert finding.gain is not None
    assert finding.gain.share > 0.7


@pytest.mark.parametrize(
    "profile",
    [called(8, AVERAGE), called(32, LAYER), called(32, AVERAGE, 500)],
    ids=["few", "layers of a network", "a GPU that works all the time"],
)
def test_other_calls_that_recur_are_fine(profile: Profile) -> None:
    assert found(profile) == []


def test_a_loop_of_a_thread_beside_one_that_sleeps_is_found_at_its_line() -> None:
    path = "/lib/python3.12/threading.py:1030@Thread._bootstrap > " + AVERAGE
    profile = called(
        32, path, beside="samples 0-1900 serve.py:3@main\nother 0-1900 " + path.removesuffix(" > {}#operator")
    )
    (finding,) = found(profile)
    assert (finding.file, finding.line) == ("train.py", 8)


def test_a_loop_in_a_layer_is_told_by_what_the_layer_calls_once() -> None:
    once = LAYER.format("aten::cat").replace(":8@", ":9@")
    lines = [f"host {at}-{at + 20} {LAYER.format(MULTIPLIES)} ->{at + 1}" for at in range(0, 960, 30)]
    lines += [f"gpu {at + 25}-{at + 27} {LAYER.format(MULTIPLIES)} > mul#kernel <-{at + 1}" for at in range(0, 960, 30)]
    (finding,) = found(stepped("\n".join([*lines, f"host 970-972 {once}"]), 1000))
    assert finding.line == 8
