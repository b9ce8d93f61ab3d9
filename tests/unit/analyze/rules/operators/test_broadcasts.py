"""Masks that are made again, and distances whose differences go through memory."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

LINE = "train.py:8@main"
FILL, CUT = "aten::ones#operator > fill#kernel", "aten::triu#operator > triu_tril_kernel#kernel"
UNSQUEEZE, SUBTRACT = "aten::unsqueeze#operator", "aten::sub#operator > sub#kernel"
SQUARE, SUM = "aten::pow#operator > pow#kernel", "aten::sum#operator > reduce#kernel"


def found(rule: str, *calls: str) -> list[Finding]:
    """Of a program that makes calls at one line, each of which works for 100 us if it ends in a kernel."""
    return of_lines(rule, *((8, call) for call in calls))


def of_lines(rule: str, *calls: tuple[int, str]) -> list[Finding]:
    """The same of calls at lines of one function."""
    lines = []
    for at, (line, call) in enumerate(calls):
        operator, _, kernel = call.partition(" > ")
        path = LINE.replace(":8@", f":{line}@")
        lines.append(f"host {10 * at}-{10 * at + 5} {path} > {operator}")
        lines += [f"gpu {100 + 100 * at}-{200 + 100 * at} {path} > {call}"] if kernel else []
    lines.append("gpu 700-900 train.py:20@main > aten::mm#operator > gemm#kernel")
    return analysis(Evidence(stepped("\n".join(lines), 1000)), [rule]).findings


def test_a_mask_that_is_cut_from_a_fill_in_each_step_is_found() -> None:
    (finding,) = found("rebuilt-mask", FILL, CUT)
    assert (finding.file, finding.line) == ("train.py", 8)
    assert "50 % of the GPU time" in finding.message
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.2, abs=0.01)
    assert found("rebuilt-mask", CUT) == []  # of values that the program has computed


def test_attention_beside_its_mask_gains_the_tiles_above_the_diagonal() -> None:
    attends = "aten::scaled_dot_product_attention#operator > flash_fwd_kernel#kernel"
    (alone,), (finding,) = found("rebuilt-mask", FILL, CUT, SQUARE), found("rebuilt-mask", FILL, CUT, attends)
    assert alone.gain is not None
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(alone.gain.share + 0.05, abs=0.01)  # half of 100 us of 1 ms
    assert finding.message.endswith("40 % of the GPU time; attention computes what they hide, too: 20 % of it")


def test_differences_of_all_pairs_are_found() -> None:
    (finding,) = found("pairwise-differences", UNSQUEEZE, UNSQUEEZE, SUBTRACT, SQUARE, SUM)
    assert (finding.file, finding.line) == ("train.py", 8)
    assert "60 % of the GPU time" in finding.message
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.27, abs=0.01)


@pytest.mark.parametrize(
    "calls",
    [
        (UNSQUEEZE, SUBTRACT, SQUARE, SUM),  # a variance
        (UNSQUEEZE, UNSQUEEZE, SUBTRACT),
        (UNSQUEEZE, UNSQUEEZE, SUBTRACT, "aten::div#operator > div#kernel", SQUARE, SUM),
    ],
)
def test_other_differences_are_fine(calls: tuple[str, ...]) -> None:
    assert found("pairwise-differences", *calls) == []


def test_rows_that_are_put_beside_each_other_on_other_lines_are_pairs_too() -> None:
    calls = [(8, UNSQUEEZE), (9, UNSQUEEZE), (10, SUBTRACT), (10, SUM)]
    (finding,) = of_lines("pairwise-differences", *calls)
    assert finding.line == 10
    assert of_lines("pairwise-differences", *calls[1:]) == []


@pytest.mark.parametrize("operator", ["gt", "__and__"])
def test_comparisons_of_all_pairs_are_found(operator: str) -> None:
    call = f"aten::{operator}#operator > gt#kernel"
    (finding,) = found("broadcast-product", UNSQUEEZE, UNSQUEEZE, call, SUM)
    assert "products or comparisons of all pairs" in finding.message
