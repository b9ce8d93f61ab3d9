"""What is advised where many short kernels are launched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import launched, stepped

LINE = "train.py:3@main"


@pytest.mark.parametrize(
    ("loop", "call", "is_single"),
    [
        ("for i in range(100):", "decode[(1,)](x[i:], out)", True),
        ("for i in range(100):", "decode[1, 1](x[i:], out)", True),
        ("for i in range(100):", "decode[(8,)](x[i:], out)", False),
        ("for i in range(100):", "decode[grid](x[i:], out)", False),
        ("for i in range(100):", "out = layers[1](x)", False),
        ("if wanted:", "decode[(1,)](x, out)", False),
    ],
)
def test_programs_that_are_launched_one_by_one_can_be_one_grid(loop: str, call: str, *, is_single: bool) -> None:
    text = f"def main():\n    {loop}\n        {call}\n"
    program = replace(stepped(launched(100, LINE, "decode", 2, 40), 4010), sources={"train.py": text})
    (finding,) = analysis(Evidence(program), ["many-launches"]).findings
    assert finding.line == 3
    assert finding.hint.startswith("one launch for all turns" if is_single else "torch.compile(mode=")
