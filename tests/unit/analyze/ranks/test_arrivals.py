"""Collectives between CPUs, whose operators begin when their rank comes to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bragg.analyze.ranks.answer import RanksAnswer, compare_ranks
from bragg.analyze.ranks.findings import findings_of
from bragg.analyze.ranks.operations import operation_of_operator
from bragg.cli.rank_files import read_ranks

STEPS, STEP_US = 20, 10_000


def trace(rank: int, *, thinks_us: float, computes_us: float, overlaps: bool, host: str = "n0") -> dict[str, Any]:
    """In each step a rank thinks, computes and begins an all-reduce; all of them leave it when the last one came."""
    events: list[dict[str, Any]] = []

    def add(name: str, begin_us: float, took_us: float) -> None:
        place = {"pid": 100 + rank, "tid": 1, "args": {}}
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "ts": begin_us, "dur": took_us, **place})

    for step in range(STEPS):
        begin_us = step * STEP_US + 1_000 + thinks_us
        add("aten::mm", begin_us, computes_us)
        add("c10d::allreduce_", begin_us + computes_us + 10, 40)
        if overlaps:
            add("aten::add", begin_us + computes_us + 60, STEP_US - 3_000 - thinks_us - computes_us)
    place = {"backend": "gloo", "rank": rank, "world_size": 2}
    return {"schemaVersion": 1, "distributedInfo": place, "host_name": host, "traceEvents": events}


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., RanksAnswer]:
    def compare(**of_second: Any) -> RanksAnswer:
        usual = {"thinks_us": 500, "computes_us": 2_000, "overlaps": False}
        files = [tmp_path / f"{rank}.json" for rank in range(2)]
        for rank, path in enumerate(files):
            path.write_text(json.dumps(trace(rank, **{**usual, **(of_second if rank else {})})))
        read = read_ranks(files)
        return compare_ranks(read.summaries, read.problems, read.sums)

    return compare


@pytest.mark.parametrize(
    ("slower", "cause", "says"),
    [
        ({"thinks_us": 1_500}, "between operators", "it spends 1 ms more between operators"),
        ({"computes_us": 3_000}, "slow CPU", "its operators take 1.50 times as long, most in aten::mm"),
    ],
)
def test_the_rank_that_comes_last_is_named_with_its_cause(
    compared: Callable[..., RanksAnswer], slower: dict[str, float], cause: str, says: str
) -> None:
    answer = compared(**slower)
    ((late, why),) = answer.stragglers
    assert (late.index, late.when.value, why.reason.value) == (1, "always", cause)
    assert late.each_ns == pytest.approx(1e6)
    assert findings_of(answer)[0].message.endswith(says)
    assert (answer.transfers, answer.path, answer.exposed) == ([], None, None)


def test_who_works_on_before_the_last_one_comes_does_not_wait(compared: Callable[..., RanksAnswer]) -> None:
    assert compared(thinks_us=500).stragglers == []
    answer = compared(thinks_us=1_500, overlaps=True)
    assert answer.lateness is not None
    assert answer.lateness.cost_ns[0].max() == 0
    assert answer.lateness.cost_ns[1].max() == pytest.approx(1e6)  # rank 0 does not overlap


def test_clocks_of_several_hosts_are_not_compared(compared: Callable[..., RanksAnswer]) -> None:
    answer = compared(thinks_us=1_500, host="n1")
    assert (answer.stragglers, answer.lateness) == ([], None)
    assert answer.notes[-1] == "no data aligns the clock of n1 with that of n0: their times are not compared"


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("c10d::allreduce_", "all-reduce"),
        ("c10d::_allgather_base_", "all-gather"),
        ("_c10d_functional::reduce_scatter_tensor", "reduce-scatter"),
        ("c10d::alltoall_base_", "all-to-all"),
        ("c10d::barrier", "barrier"),
        ("c10d::send", ""),
        ("_c10d_functional::wait_tensor", ""),
        ("aten::add", ""),
    ],
)
def test_operators_of_collectives_are_known(name: str, operation: str) -> None:
    assert operation_of_operator(name) == operation
