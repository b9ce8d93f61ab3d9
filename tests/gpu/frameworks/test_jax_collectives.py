"""Collectives of JAX on two GPUs: of one process, and of two; by NCCL, and by XLA's own kernels."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

import pytest

from bragg.analyze.ranks.answer import compare_ranks
from bragg.analyze.ranks.summarize import summarize
from bragg.cli.rank_files import read_ranks
from bragg.model.ranks.summary import RankSummary
from tests.gpu.conftest import Recorded

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]
Run = Callable[..., Recorded]
PROGRAM = "jax_collectives.py"
STEPS, ROWS = 20, (2, 8192)  # of 1024 float32; half of them are on either GPU
BYTES = {rows // 2 * 1024 * 4 for rows in ROWS}
ARGUMENTS = tuple(map(str, (STEPS, *ROWS)))


@pytest.fixture
def run_on_two(run: Run) -> Run:
    import jax

    if jax.device_count() < 2:
        pytest.skip("one GPU")
    return run


def check(ranks: list[RankSummary]) -> None:
    for rank in ranks:
        calls, table = rank.calls, rank.collectives()
        of_sums = [call for call in range(len(calls)) if calls.size_bytes[call] in BYTES]
        assert {calls.operation[call] for call in of_sums} == {"all-reduce"}
        assert {calls.group[call] for call in of_sums} == {"devices 0,1"}
        for size in BYTES:
            own = [call for call in of_sums if calls.size_bytes[call] == size]
            assert sum((table.call == call).sum() for call in own) == STEPS + 1, size


def test_gpus_of_one_process_are_ranks(run_on_two: Run) -> None:
    recorded = run_on_two(PROGRAM, "--data", "trace", arguments=("one", *ARGUMENTS))
    assert recorded.path is not None
    read = read_ranks([recorded.path])
    assert [rank.rank for rank in read.summaries] == [0, 1]
    check(read.summaries)


def test_processes_have_groups_of_devices_and_the_late_one_is_named(run_on_two: Run) -> None:
    launcher = ("--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    recorded = run_on_two(PROGRAM, "--data", "trace", *launcher, arguments=("two", *ARGUMENTS))
    ranks = [summarize(profile) for profile in recorded.profiles if profile.total("gpu_count")]
    assert [rank.rank for rank in ranks] == [0, 1]
    check(ranks)
    late = [(found.index, found.when.value) for found, _ in compare_ranks(ranks).stragglers]
    assert (1, "since") in late, late
