"""Operators that plan at each call, and the option of the program that makes them do it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import launched, stepped

_PATH = "train.py:9@step > aten::cudnn_convolution#operator"


@pytest.mark.parametrize(
    ("option", "line", "hint"),
    [
        ("torch.backends.cudnn.benchmark = True", 3, "leave torch.backends.cudnn.benchmark off"),
        ("torch.backends.cudnn.benchmark = False", 9, "keep shapes the same"),
    ],
)
def test_convolutions_that_are_tuned_anew_are_named_where_the_program_asks_for_it(
    option: str, line: int, hint: str
) -> None:
    steps = f"host 0-3000 {_PATH}\n" + launched(1, _PATH, "conv", 20, 1, 2990)
    program = replace(
        stepped(steps, 3050), sources={"train.py": f"import torch\n\n{option}\n" + "\n" * 5 + "conv(x)\n"}
    )
    (finding,) = analysis(Evidence(program), ["planning"]).findings
    assert (finding.line, finding.hint.split(",")[0].split(":")[0]) == (line, hint)
