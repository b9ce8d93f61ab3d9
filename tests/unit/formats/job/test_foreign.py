from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bragg.formats.job.directory import is_job, is_recorded_job, read_job
from bragg.formats.job.foreign import number_in_name
from tests.support.iprof_trace import iprof_trace
from tests.support.jobs import job_of
from tests.support.nsys_database import write_database
from tests.support.profiling_file import profiling_file, samples


def _kineto(path: Path, rank: int, world: int = 4) -> None:
    event = {"ph": "X", "name": "f", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
    place = {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": [{"pg_name": "0", "rank": 9}]}
    content: dict[str, Any] = {"schemaVersion": 1, "distributedInfo": place, "traceEvents": [event]}
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def _ranks(directory: Path) -> dict[int, str]:
    return {rank.rank: rank.path.name for rank in read_job(directory).ranks}


def test_traces_of_pytorch_say_their_rank_whatever_their_names_say(tmp_path: Path) -> None:
    _kineto(tmp_path / "n1_77.1690000000000.pt.trace.json", 3)
    _kineto(tmp_path / "trace.7.json.gz", 0)
    job = read_job(tmp_path)
    assert _ranks(tmp_path) == {0: "trace.7.json.gz", 3: "n1_77.1690000000000.pt.trace.json"}
    assert (job.world, job.problems) == (4, ("ranks 1-2 of 4 without a profile",))


def test_other_files_are_of_the_rank_in_their_names(tmp_path: Path) -> None:
    for number in (0, 12):
        (tmp_path / f"iprof-{number}.pftrace").write_bytes(iprof_trace())
    (tmp_path / "notes.1.json").write_text("{}")
    assert _ranks(tmp_path) == {0: "iprof-0.pftrace", 12: "iprof-12.pftrace"}
    assert is_job(tmp_path)
    assert not is_recorded_job(tmp_path)


def test_databases_of_nsys_are_a_job(tmp_path: Path) -> None:
    for number in range(2):
        write_database(tmp_path / f"report.{number}.sqlite")
        (tmp_path / f"report.{number}.nsys-rep").write_bytes(b"\0")
    assert _ranks(tmp_path) == {0: "report.0.sqlite", 1: "report.1.sqlite"}


def test_samples_of_python_are_a_job_and_weights_are_not(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"profile-{number}.bin").write_bytes(profiling_file(samples()))
        (tmp_path / f"pytorch_model-{number + 7:05}.bin").write_bytes(b"PK\x03\x04 weights")
    assert _ranks(tmp_path) == {0: "profile-0.bin", 1: "profile-1.bin"}


def test_a_rank_with_two_files_is_left_out(tmp_path: Path) -> None:
    for name in ("a.0.pftrace", "b.0.pftrace", "a.1.pftrace"):
        (tmp_path / name).write_bytes(iprof_trace())
    job = read_job(tmp_path)
    assert [rank.rank for rank in job.ranks] == [1]
    assert job.problems == ("2 profiles say that they are of rank 0, none is used: a.0.pftrace, b.0.pftrace",)


@pytest.mark.parametrize("names", [[], ["iprof.0.pftrace"], ["a.pftrace", "b.pftrace"]])
def test_files_of_fewer_than_two_ranks_are_no_job(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_bytes(iprof_trace())
    assert not is_job(tmp_path)


def test_beside_profiles_of_bragg_other_files_are_not_ranks(tmp_path: Path) -> None:
    directory = job_of(tmp_path / "job", "root\n  k 1ms", "root\n  k 1ms")
    for number in range(3):
        (directory / f"export.{number}.pftrace").write_bytes(iprof_trace())
    assert _ranks(directory) == {0: "rank00000.bragg", 1: "rank00001.bragg"}


@pytest.mark.parametrize(
    ("name", "number"),
    [("report.3.sqlite", 3), ("trace-rank12.json.gz", 12), ("n1_7.pftrace", 7), ("trace.json", None)],
)
def test_number_in_a_name(name: str, number: int | None) -> None:
    assert number_in_name(Path(name)) == number
