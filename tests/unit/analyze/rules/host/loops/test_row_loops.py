"""Loops over the rows of tensors: how many rows each turn takes, and where they are said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Profile
from tests.support.stepped import launched, stepped

ROWS = 16
ITERATES = "train.py:2@main > /lib/torch/_tensor.py:1223@Tensor.__iter__ > aten::unbind#operator"
PRODUCT = "train.py:3@main > aten::mm#operator"
INNER = "train.py:4@main > aten::add#operator"


def iterating(head: str, tensors: int, inner: int = 0) -> Profile:
    """A loop that takes rows of some tensors; each turn multiplies once, and adds in an inner loop."""
    taken = [f"host {at}-{at + ROWS} {ITERATES}" for at in range(0, ROWS * tensors, ROWS)]
    taken += [f"host {at}-{at + 1} {ITERATES} > aten::select#operator" for at in range(ROWS * tensors)]
    end = 80 + 40 * ROWS
    products = [f"host {at}-{at + 5} {PRODUCT}" for at in range(80, end, 40)]
    sums = [f"host {end + 40 * at}-{end + 40 * at + 5} {INNER}" for at in range(ROWS * inner)]
    work = [launched(ROWS, PRODUCT, "gemv", 2, 40, 80), launched(ROWS * inner, INNER, "add", 2, 40, end)]
    program = f"def main():\n    {head}\n        out = layer @ x\n        total = [a + b for a, b in zip(out, total)]\n"
    profile = stepped("\n".join([*taken, *products, *sums, *work]), end + 40 * ROWS * inner + 20)
    return replace(profile, sources={"train.py": program})


@pytest.mark.parametrize(
    ("head", "tensors", "inner", "each"),
    [
        ("for x in xs:", 1, 0, "1 kernel"),
        ("for x in xs:", 1, 2, "3 kernels"),
        ("for x, y in zip(xs, ys):", 2, 0, "1 kernel"),
        ("for x, y in zip(xs, ys):", 2, 2, "3 kernels"),
        ("for x, name in zip(xs, names):", 1, 0, "1 kernel"),
    ],
)
def test_a_turn_takes_a_row_of_each_tensor(head: str, tensors: int, inner: int, each: str) -> None:
    (finding,) = analysis(Evidence(iterating(head, tensors, inner)), ["row-loop"]).findings
    assert finding.message == f"a loop takes 16 rows of a tensor one by one and launches {each} for each"
    assert finding.line == 2
    assert {place.line for place in finding.places} == ({3, 4} if inner else {3})
