from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.straggler_jobs import KINDS, write_job_files
from bragg.analyze.ranks.answer import compare_ranks
from bragg.cli import rank_files
from bragg.cli.rank_files import RankBatch, executor_named, read_batch, read_ranks
from bragg.errors import UsageError
from bragg.views.text.ranks_text import ranks_json
from tests.support.nsys_database import write_database
from tests.unit.cli.conftest import Bragg


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return write_job_files(KINDS["slow-gpu"], tmp_path / "train.job")


def test_batches_that_others_read_are_the_same_job(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_ranks(files)
    monkeypatch.setattr(rank_files, "_RANKS_A_BATCH", 3)
    monkeypatch.setattr(rank_files, "_IN_MEMORY_BYTES", 0)
    with ThreadPoolExecutor(2) as pool:
        parts = read_ranks([files[0].parent], pool)
    answers = [compare_ranks(read.summaries, read.problems, read.sums) for read in (whole, parts)]
    one, other = (ranks_json(answer) for answer in answers)
    assert one["stragglers"] == other["stragglers"] != []
    assert one["imbalances"] == other["imbalances"]


def test_few_batches_wait_for_who_takes_them(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_files, "_RANKS_A_BATCH", 1)
    monkeypatch.setattr(rank_files, "_BATCHES_AHEAD", 2)
    submitted: list[object] = []
    n_submitted: list[int] = []

    class Taken(Future[RankBatch]):
        def result(self, timeout: float | None = None) -> RankBatch:
            n_submitted.append(len(submitted))
            return super().result(timeout)

    class Pool(Executor):
        def submit(self, call: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
            submitted.append(args)
            future = Taken()
            future.set_result(call(*args, **options))
            return future

    assert len(read_ranks(files, Pool()).summaries) == 8
    assert n_submitted == [3, 4, 5, 6, 7, 8, 8, 8]


@pytest.mark.parametrize("order", [lambda parts: parts, lambda parts: parts[::-1]])
def test_sums_of_call_paths_add_up_in_any_order(
    files: list[Path], order: Callable[[Sequence[object]], Sequence[object]]
) -> None:
    sums = [read_batch([path]).sums for path in files]
    whole, parts = read_batch(files).sums, order(sums)
    first, *rest = parts
    for part in rest:
        first = type(whole).joined([first, part])
    assert np.array_equal(first.path, whole.path)
    assert np.allclose(first.gpu_ns, whole.gpu_ns)
    assert np.array_equal(first.most_rank, whole.most_rank)
    assert first.host_waits_ns == whole.host_waits_ns


def test_a_damaged_file_is_a_problem_of_its_batch_and_a_number_that_two_claim_is_left_out(files: list[Path]) -> None:
    files[1].write_bytes(files[1].read_bytes()[:500])
    read = read_ranks([*files, files[2]])
    assert [each.rank for each in read.summaries] == [0, 3, 4, 5, 6, 7]
    assert sorted(read.sums.host_waits_ns) == [0, 3, 4, 5, 6, 7]
    damaged, double = read.problems
    assert "rank00001.bragg" in damaged
    assert double == "2 profiles say that they are of rank 2: none of them is used"


@pytest.mark.parametrize(("name", "said"), [("ray:x", "no executor 'ray:x'"), ("dask:", "no executor 'dask:'")])
def test_executors_that_are_not_there_are_refused(bragg: Bragg, files: list[Path], name: str, said: str) -> None:
    ended = bragg("ranks", str(files[0].parent), "--executor", name)
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_without_dask_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="distributed is not installed"), executor_named("dask:tcp://n1:8786"):
        pass


def test_databases_of_nsys_are_ranks_by_the_numbers_in_their_names(tmp_path: Path) -> None:
    named = [write_database(tmp_path / name) for name in ("report.7.sqlite", "job-rank12.sqlite")]
    for path in named:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE StringIds SET value = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' WHERE id = 1")
    read = read_ranks([*named, write_database(tmp_path / "report.sqlite")])
    assert [(each.rank, each.collectives().duration_ns.tolist()) for each in read.summaries] == [
        (7, [400, 300]),
        (12, [400, 300]),
    ]
    assert read.problems == [f"{tmp_path / 'report.sqlite'} does not say which rank it is"]


def test_a_rank_that_was_read_keeps_no_larger_array_alive(files: list[Path]) -> None:
    (rank,) = read_batch(files[:1]).summaries
    columns = [getattr(rank.collectives(), name) for name in rank.collectives().columns()]
    assert [column.dtype for column in columns].count(np.int64) > 0
    assert all(column.base is None for column in columns)
