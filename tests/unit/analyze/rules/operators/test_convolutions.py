"""What XLA adds around convolutions, and long filters of PyTorch."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped
from tests.support.told_by_text import found as told_by
from tests.support.told_by_text import ran

CALL = "train.py:20@main > jit(step)#operator"
CONVOLVES = f"{CALL} > conv_general_dilated#operator"


def found(transposed: str) -> list[Finding]:
    text = f"""host 0-90 train.py:2@main
    gpu 100-200 {transposed} > input_transpose_fusion#kernel
    gpu 200-700 {CONVOLVES} > sm90_xmma_fprop_nhwc#kernel"""
    return analysis(Evidence(stepped(text, 800)), ["layout-conversions"]).findings


def test_transposes_of_a_convolution_are_conversions_of_its_layout() -> None:
    (finding,) = found(CONVOLVES)
    assert finding.line == 20
    assert "17 % of the GPU time" in finding.message


def test_transposes_of_the_program_are_its_own() -> None:
    assert found(f"{CALL} > transpose#operator") == []


LONG = """taps = {}
class Net:
  def __init__(self):
    self.weight = nn.Parameter(torch.randn(16, 1, taps) * 0.1)
    self.conv = nn.Conv1d(16, 16, kernel_size=taps, groups=16)
  def forward(self, x):
    return {}
"""


@pytest.mark.parametrize(
    ("taps", "text", "told"),
    [
        (2001, "F.conv1d(F.pad(x, (2000, 0)), self.weight, groups=16)", "filters of a thousand or more taps"),
        (2001, "self.conv(x)", "filters of a thousand or more taps"),
        (255, "self.conv(x)", "filters of hundreds of taps"),
        (127, "self.conv(x)", ""),
        (2001, "F.conv1d(x, self.weight)", ""),  # of all channels
        (2001, "F.conv1d(x, self.weight, stride=4, groups=16)", ""),
        (2001, "F.conv1d(x, other, groups=16)", ""),
    ],
)
def test_long_filters_of_single_channels_are_applied_by_transforms(taps: int, text: str, told: str) -> None:
    findings = told_by("cheaper-call", ran(LONG.format(taps, text), "7@forward: conv1d"))
    assert [each.message.split(",")[0] for each in findings] == [told] * bool(told)
