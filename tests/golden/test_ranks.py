"""Stragglers that two H100 recorded by NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg.analyze.ranks.answer import RanksAnswer, compare_ranks
from bragg.formats.job.summaries import read_summary

RECORDINGS = Path(__file__).parent / "ranks"


def _answer(name: str) -> RanksAnswer:
    found = [read_summary(RECORDINGS / f"h100-{name}-{rank}.zip") for rank in range(2)]
    return compare_ranks([summary for summary in found if summary is not None])


@pytest.mark.parametrize(
    ("name", "when", "cause", "first_step", "each_ns"),
    [("since", "since", "host", 20, 5.3e6), ("input", "always", "input", 1, 6.0e6)],
)
def test_the_rank_that_was_made_late_is_named(
    name: str, when: str, cause: str, first_step: int, each_ns: float
) -> None:
    ((late, why),) = _answer(name).stragglers
    assert (late.index, late.when.value, why.reason.value) == (1, when, cause)
    assert late.steps[0] + 1 == first_step
    assert late.each_ns == pytest.approx(each_ns, rel=0.02)


def test_collectives_carry_what_pytorch_told_of_them() -> None:
    answer = _answer("since")
    assert answer.ranks[0].calls.group == ["0"] * len(answer.ranks[0].calls)
    assert set(answer.ranks[0].calls.operation) == {"all-gather", "all-reduce", "broadcast"}
    largest = answer.transfers[0]
    assert (largest.operation, largest.n_ranks, largest.size_bytes, largest.count) == ("all-reduce", 2, 50_356_224, 78)
    # NVLink of an H100 carries 450 GB/s in each direction.
    assert largest.link_bytes_per_s == 450e9
    assert 200e9 < largest.bus_bytes_per_s < 450e9
