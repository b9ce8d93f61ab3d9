"""What XLA adds around convolutions."""

from __future__ import annotations

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

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
