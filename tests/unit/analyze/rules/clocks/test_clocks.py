"""Rules about clocks inside of kernels: each finds its defect, and not its repaired twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import Analysis, analysis
from tests.support.profiles import profile_from_text

NAME = "matmul<w4 s3>"
RULES = ("waits-for-tiles", "waits-for-warps", "tail-of-blocks", "uneven-multiprocessors")


def stretch(does: str, line: int, cycles: list[int], *, in_loop: bool = True) -> dict[str, Any]:
    place = [{"file": "/src/matmul.py", "line": line, "function": "matmul"}]
    return {"does": does, "waits": does.startswith("wait"), "place": place, "in_loop": in_loop, "cycles": cycles}


def inside(*segments: dict[str, Any], tail: float = 0.02, busy: tuple[int, ...] = (90, 100), **more: Any) -> Any:
    return {
        "kernel": NAME,
        "level": "everything",
        "warps": 4,
        "blocks": 8,
        "covered_cycles": 4000,
        "warp_cycles": 4000,
        "span_ns": 50_000,
        "block_ns": [10_000.0, 20_000.0, 30_000.0],
        "multiprocessors": {"number": [*range(len(busy))], "busy_ns": [*busy]},
        "resident_blocks": 2,
        "tail_share": tail,
        "segments": [*segments],
        **more,
    }


def judged(row: dict[str, Any], *rules: str) -> Analysis:
    profile = profile_from_text(f"root\n  train.py:12@step\n    {NAME} 10ms x100 @0")
    meta = {"gpu_busy_ns": {"0": 10_000_000}, "gpu_first_ns": 0, "gpu_last_ns": 10_000_000, "inside_kernels": [row]}
    return analysis(Evidence(replace(profile, meta=meta)), rules or RULES)


PRODUCT = stretch("begin matrix products", 21, [100, 100, 100, 100])


def test_warps_that_wait_for_tiles_are_found_at_the_line_that_waits() -> None:
    (finding,) = judged(inside(PRODUCT, stretch("wait for a barrier in memory", 20, [500, 500, 600, 400]))).findings
    assert (finding.rule, finding.file, finding.line) == ("waits-for-tiles", "/src/matmul.py", 20)
    assert finding.message.startswith("matmul waits 50 % of the time of its warps for the tiles")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.25)


def test_of_sampled_warps_those_that_told_are_judged() -> None:
    sampled = {"level": "waits of sampled warps", "covered_by_warp": [4000, 0, 0, 0], "partitions": [0]}
    barrier = stretch("wait for other warps", 20, [1600, 0, 0, 0])
    (finding,) = judged(inside(barrier, **sampled)).findings
    assert finding.message.startswith("matmul waits 40 % of the time of its warps for other warps of their block")
    assert "waits least" not in finding.message
    products = stretch("begin matrix products", 21, [100, 0, 0, 0])
    few, many = (stretch("wait for a barrier in memory", 20, [cycles, 0, 0, 0]) for cycles in (400, 2000))
    assert judged(inside(products, few, **sampled)).findings == []
    (finding,) = judged(inside(products, many, **sampled)).findings
    assert finding.message.startswith("matmul waits 50 % of the time of its warps for the tiles")


def test_what_copies_take_is_evidence_of_waiting_for_tiles() -> None:
    copies = [
        {"does": "begin copies to shared memory", "ahead": 2, "latency": [900.0, 950.0], "waited": [500.0, 510.0]}
    ]
    row = inside(PRODUCT, stretch("wait for a barrier in memory", 20, [500, 500, 600, 400]), copies=copies)
    (finding,) = judged(row).findings
    told = {quantity.name: quantity.value for quantity in finding.evidence}
    assert told["copies begun before the first wait"] == 2
    assert told["cycles from the beginning of a copy to the end of its wait"] == 950


@pytest.mark.parametrize(
    "row",
    [
        inside(PRODUCT, stretch("wait for a barrier in memory", 20, [100, 100, 100, 100])),
        inside(stretch("wait for a barrier in memory", 20, [500, 500, 600, 400])),
        inside(PRODUCT, stretch("wait for copies to shared memory", 30, [500] * 4, in_loop=False)),
        # The warps that copy wait for room: those that multiply have what they need.
        inside(
            stretch("begin matrix products", 21, [300, 300, 300, 0]),
            stretch("wait for a barrier in memory", 20, [50, 50, 50, 950]),
        ),
    ],
)
def test_products_that_have_their_tiles_in_time_are_fine(row: dict[str, Any]) -> None:
    assert judged(row).findings == []


def test_the_wait_of_specialized_warps_that_multiply_is_theirs_alone() -> None:
    row = inside(
        stretch("begin matrix products", 21, [300, 0, 0, 0]),
        stretch("wait for a barrier in memory", 20, [400, 0, 0, 0]),
    )
    (finding,) = judged(row).findings
    assert "waits 40 % of the time" in finding.message


def test_warps_that_wait_for_each_other_are_found_with_the_one_that_is_late() -> None:
    (finding,) = judged(inside(stretch("wait for other warps", 9, [900, 900, 100, 900]))).findings
    assert (finding.rule, finding.line) == ("waits-for-warps", 9)
    assert "warp 2 waits least, the others for it" in finding.message
    (even,) = judged(inside(stretch("wait for other warps", 9, [500] * 4))).findings
    assert "waits least" not in even.message
    assert judged(inside(stretch("wait for other warps", 9, [150] * 4))).findings == []


def test_a_tail_is_found_as_it_was_measured() -> None:
    (finding,) = judged(inside(tail=0.3)).findings
    assert finding.rule == "tail-of-blocks"
    assert (finding.file, finding.line) == ("train.py", 12)
    assert finding.message.startswith("matmul leaves 30 % of the GPU empty after its last block has begun: it has 2.0")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.3)
    assert judged(inside(tail=0.3, blocks=4)).findings == []  # one wave: few blocks, which is another rule
    assert judged(inside(tail=0.3, resident_blocks=0)).findings == []
    assert judged(inside(tail=0.3, span_ns=5000)).findings == []


def test_uneven_multiprocessors_are_found() -> None:
    (finding,) = judged(inside(busy=(50, 50, 50, 90))).findings
    assert finding.rule == "uneven-multiprocessors"
    assert "50 % longer than the mean: a block takes 10.0 to 30.0 us" in finding.message
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(1 / 3)
    assert judged(inside(busy=(50, 52, 50, 51))).findings == []


def test_without_clocks_nothing_is_judged() -> None:
    told = judged({"kernel": NAME, "refused": []})
    assert told.findings == []
    assert set(told.skipped) == set(RULES)
    assert {need.option for need in told.skipped.values()} == {"--instrument"}
    assert judged(inside(PRODUCT, kernel="another<w4>", tail=0.5)).findings == []
