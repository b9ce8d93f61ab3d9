"""The examples of PyTorch's own patterns, recorded on an H200 beside other programs: each is named at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.report import answered
from bragg.model import Finding

RECORDINGS = Path(__file__).parent / "recordings/patterns"


def found(name: str, rule: str) -> list[Finding]:
    """What a rule finds; sizes are so small that some gain nothing."""
    profile = formats.load(RECORDINGS / f"h200-{name}.bragg")
    return [each for each in answered(profile).analysis.findings if each.rule == rule]


@pytest.mark.parametrize(
    ("name", "rule", "lines"),
    [
        ("extra_copies", "host-fills", range(6, 15)),
        ("single_indices", "many-launches", range(8, 16)),
        ("full_precision", "full-precision-matmul", [7]),
        ("one_tensor_adam", "optimizer-loop", [10]),
        ("one_tensor_adamw", "optimizer-loop", [10]),
        ("one_tensor_sgd", "optimizer-loop", [10]),
        ("no_workers", "data-loading", [9]),
        ("zeroed_by_optimizer", "zero-grad", [11]),
        ("zeroed_by_module", "zero-grad", [11]),
        ("biased_conv", "bias-before-norm", [8]),
        ("unaligned_half", "unaligned-matmul", [7]),
        ("unaligned_batch", "unaligned-matmul", [7]),
    ],
)
def test_each_example_is_named_at_its_line_and_its_twin_is_not(name: str, rule: str, lines: list[int]) -> None:
    (finding,) = found(f"{name}_slow", rule)
    assert (Path(finding.file).name, finding.line in lines) == (f"{name}_slow.py", True)
    assert [each for each in found(f"{name}_fast", rule) if each.hint == finding.hint] == []


def test_workers_that_do_not_keep_up_are_another_cause_than_none() -> None:
    (finding,) = found("no_workers_fast", "data-loading")
    assert finding.message.startswith("the DataLoader's workers do not keep up")
