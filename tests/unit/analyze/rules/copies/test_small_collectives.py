"""Many small collectives a step are found, with what their latency costs; few or large ones are fine."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import Analysis, analysis
from tests.support.stepped import stepped

LINE = "train.py:7@average"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL#kernel"
COUNT = 16


def step(elements: int, count: int, named: bool = True) -> str:
    """Some collectives of 20 us, one after the other, each launched while the one before it runs; then a product."""
    call = f"{LINE} > collective allreduce[{elements} f32, group 0 of 2]#operator" if named else LINE
    lines = []
    for number in range(count):
        at = number * 30
        lines.append(f"host {at}-{at + 6} {call} > cuLaunchKernel#gpu_api ->{number + 1}")
        lines.append(f"gpu {at + 8}-{at + 28} {call} > {NCCL} <-{number + 1}")
    lines.append(f"host 500-505 {LINE} > aten::mm#operator > cuLaunchKernel#gpu_api ->99")
    lines.append(f"gpu 508-990 {LINE} > aten::mm#operator > gemm#kernel <-99")
    return "\n".join(lines)


def judged(elements: int, count: int = COUNT, *, named: bool = True) -> Analysis:
    return analysis(Evidence(stepped(step(elements, count, named), 1000)), ["small-collectives"])


def test_small_collectives_are_named_with_their_size_and_their_latency() -> None:
    (finding,) = judged(1024).findings
    assert finding.message == "16 collectives a step of 4 kB each: their latency costs more than their bytes"
    assert (finding.file, finding.line) == ("train.py", 7)
    assert [(each.name, each.unit) for each in finding.evidence] == [
        ("collectives a step", "1"),
        ("mean size", "B"),
        ("GPU time of a collective", "ns"),
    ]
    assert [each.value for each in finding.evidence] == pytest.approx([16, 4096, 20_000])
    assert finding.gain is not None
    # Of each step 320 us are collectives, and about 135 us of waiting for their launches.
    assert finding.gain.share == pytest.approx((0.32 + 0.135) * 0.9, abs=0.01)


@pytest.mark.parametrize(("elements", "count"), [(1024, 9), (65_536, COUNT)])
def test_few_or_large_collectives_are_fine(elements: int, count: int) -> None:
    assert judged(elements, count).findings == []


def test_without_sizes_the_rule_cannot_judge() -> None:
    assert judged(1024, named=False).skipped["small-collectives"].what == "sizes of collectives"


def test_a_program_without_collectives_is_fine() -> None:
    assert judged(1024, 0).fine == ["small-collectives"]
