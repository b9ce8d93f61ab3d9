"""Operators that lines of one function call."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.callers import Callers
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import named
from bragg.analyze.engine import analysis
from bragg.model import Profile
from tests.support.stepped import stepped

FIRST = "train.py:3@main > train.py:10@layer > aten::first#operator"


def program(*calls: str) -> Profile:
    """A program that makes these calls, 1 us each, in each step."""
    return stepped("\n".join(f"host {at}-{at + 1} {call}" for at, call in enumerate(calls)), 100)


@pytest.mark.parametrize(
    ("other", "is_near"),
    [
        ("train.py:3@main > train.py:10@layer > aten::second#operator", True),
        ("train.py:3@main > train.py:13@layer > aten::second#operator", True),
        ("train.py:3@main > train.py:14@layer > aten::second#operator", False),
        ("train.py:3@main > train.py:11@norm > aten::second#operator", False),
        ("train.py:4@main > train.py:10@layer > aten::second#operator", False),  # another call of it
        ("train.py:3@main > train.py:10@layer > aten::third#operator > aten::second#operator", False),
        ("train.py:3@main > train.py:11@layer > /x/torch/functional.py:9@einsum > aten::second#operator", True),
        ("train.py:3@main > train.py:11@layer > torch: forward > /x/torch/nn/a.py:9@f > aten::second#operator", True),
        ("train.py:3@main > train.py:11@layer > train.py:11@layer.<listcomp> > aten::second#operator", True),
        ("train.py:3@main > train.py:11@layer > [backward] > aten::second#operator", False),
    ],
)
def test_lines_of_one_call_of_a_function_are_near_if_they_are_close(other: str, is_near: bool) -> None:
    profile = program(FIRST, other)
    first, second = (named(profile, name.__eq__) for name in ("aten::first", "aten::second"))
    assert Callers(profile).near(first, second).any() == is_near
    assert Callers(profile).near(second, first).any() == is_near


def test_attention_on_one_line_has_two_products_for_each_softmax() -> None:
    line = "train.py:3@main > train.py:10@attend"
    work = [f"host {at}-{at + 1} {line} > aten::matmul#operator" for at in (1, 8)]
    work += [f"host 4-5 {line} > aten::softmax#operator"]
    work += [
        f"gpu {at}-{at + 20} {line} > aten::{name}#operator > k#kernel"
        for at, name in ((10, "matmul"), (30, "softmax"))
    ]
    (finding,) = analysis(Evidence(stepped("\n".join(work), 100)), ["unfused-attention"]).findings
    assert finding.line == 10
    assert analysis(Evidence(stepped("\n".join(work[1:]), 100)), ["unfused-attention"]).findings == []


@pytest.mark.parametrize("copy", ["aten::to", "aten::index"])  # an index of the host is copied, too
def test_a_tensor_that_is_filled_on_one_line_and_copied_on_the_next_is_found_where_it_is_filled(copy: str) -> None:
    work = ["host 1-9 train.py:10@main > aten::randn#operator"]
    work += [f"host 10-22 train.py:11@main > {copy}#operator"]
    work += [f"host 11-20 train.py:11@main > {copy}#operator > aten::copy_#operator ->1"]
    work += [f"gpu 30-40 train.py:11@main > {copy}#operator > aten::copy_#operator > copy HtoD#memory <-1 bytes=99"]
    (finding,) = analysis(Evidence(stepped("\n".join(work), 100)), ["host-fills"]).findings
    assert finding.line == 10
