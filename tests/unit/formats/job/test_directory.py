from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bragg.errors import BadFile
from bragg.formats.job import directory as job_files
from bragg.formats.job.directory import INDEX, is_job, rank_file_name, read_job, write_job
from bragg.model.ranks.job import Rank
from tests.support.jobs import job_of, rank_profile, write_rank

WORK = "root\n  k 1ms"


def test_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    directory = job_of(tmp_path / "job", WORK, WORK)
    job = read_job(directory)
    assert [rank.path.name for rank in job.ranks] == ["rank00000.bragg", "rank00001.bragg"]
    assert (job.run_id, job.launcher, job.world, job.hosts, job.problems) == ("a", "torchrun", 2, ["n1"], ())
    assert is_job(directory)
    content = json.loads((directory / INDEX).read_text())
    assert (content["format"], content["version"], content["world"], content["hosts"]) == ("bragg-job", 1, 2, ["n1"])


@pytest.mark.parametrize("content", [None, "{", "[]", '{"version": 9}', '{"ranks": 7}'])
def test_profiles_are_asked_themselves_where_the_index_does_not_tell(tmp_path: Path, content: str | None) -> None:
    directory = job_of(tmp_path, WORK, WORK)
    (directory / INDEX).unlink()
    if content is not None:
        (directory / INDEX).write_text(content)
    job = read_job(directory)
    assert [(rank.rank, rank.pid) for rank in job.ranks] == [(0, 100), (1, 101)]
    assert len(job.problems) == (content in ("{", '{"version": 9}'))


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    for number in (1, 4, 7):
        write_rank(tmp_path, rank_profile(WORK, number, 8))
    assert read_job(tmp_path).problems == ("ranks 0, 2-3, 5-6 of 8 without a profile",)


def test_listed_profile_that_is_gone_is_named(tmp_path: Path) -> None:
    (job_of(tmp_path, WORK, WORK) / rank_file_name(0)).unlink()
    assert read_job(tmp_path).problems == ("job.json lists rank00000.bragg, which is not there",)


def test_two_profiles_of_one_rank_are_both_left_out(tmp_path: Path) -> None:
    job_of(tmp_path, WORK, WORK)
    write_rank(tmp_path, rank_profile(WORK, 1, pid=7), "rank00001-2.bragg")
    job = read_job(tmp_path)
    assert [rank.rank for rank in job.ranks] == [0]
    assert job.problems == ("2 profiles say that they are of rank 1, none is used: rank00001-2.bragg, rank00001.bragg",)


def test_a_damaged_profile_is_said_once(tmp_path: Path) -> None:
    (job_of(tmp_path, *[WORK] * 4) / INDEX).unlink()
    (tmp_path / rank_file_name(2)).write_bytes(b"PK no archive")
    (tmp_path / rank_file_name(3)).unlink()
    (damaged, missing) = read_job(tmp_path).problems
    assert damaged.startswith(f"{tmp_path / rank_file_name(2)} is ")
    assert missing == "rank 3 of 4 without a profile"


def test_last_restart_of_a_rank_is_used(tmp_path: Path) -> None:
    write_rank(tmp_path, rank_profile(WORK, 0, 1))
    write_rank(tmp_path, rank_profile(WORK, 0, 1, job={"restarts": 1}))
    job = read_job(tmp_path)
    assert [rank.path.name for rank in job.ranks] == ["rank00000.restart1.bragg"]
    assert job.problems == ()


def test_profiles_of_another_run_are_left_out(tmp_path: Path) -> None:
    job_of(tmp_path, WORK, WORK)
    write_rank(tmp_path, rank_profile(WORK, 2, 3, job={"run_id": "b"}))
    job = read_job(tmp_path)
    assert [rank.rank for rank in job.ranks] == [0, 1]
    assert job.problems == ("profiles of 2 runs are here: 1 that are not of a are left out",)


def test_damaged_profile_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    write_rank(tmp_path, rank_profile(WORK, 0, 1))
    (tmp_path / rank_file_name(1)).write_bytes(b"PK\x03\x04 broken")
    job = read_job(tmp_path)
    assert [rank.rank for rank in job.ranks] == [0]
    assert "rank00001.bragg is damaged" in job.problems[0]


def test_what_ranks_do_not_agree_on_is_said(tmp_path: Path) -> None:
    for number, (version, program) in enumerate([("1", "a.py"), ("1", "a.py"), ("2", "b.py")]):
        write_rank(tmp_path, rank_profile(WORK, number, 3, bragg=version, command=["python", program]))
    assert read_job(tmp_path).problems == (
        "the ranks have different versions of bragg: 1 (0-1), 2 (2)",
        "the ranks have different programs: a.py (0-1), b.py (2)",
    )


def test_job_with_processes_that_still_run_or_were_killed_says_so(tmp_path: Path) -> None:
    write_rank(tmp_path, rank_profile(WORK, 0, 2))
    (tmp_path / ".bragg-x").mkdir()
    (tmp_path / ".bragg-x/left.part").touch()
    assert read_job(tmp_path).problems[-1] == f"1 process has left a capture: bragg recover {tmp_path}"
    with (tmp_path / f".bragg-x/{os.getpid()}.part").open("wb"):
        assert read_job(tmp_path).problems[-2] == "1 process is still running: not in these numbers"


def test_directory_without_a_rank_is_refused(tmp_path: Path) -> None:
    assert not is_job(tmp_path)
    with pytest.raises(BadFile, match="no profile of a rank"):
        read_job(tmp_path)
    with pytest.raises(BadFile, match="not the directory of a job"):
        read_job(tmp_path / "x")


def test_names_of_the_index_stay_in_the_directory(tmp_path: Path) -> None:
    job_of(tmp_path / "job", WORK)
    write_rank(tmp_path, rank_profile(WORK, 5), "outside.bragg")
    (tmp_path / "job" / INDEX).write_text(
        json.dumps({"version": 1, "ranks": [{"rank": 5, "file": "../outside.bragg"}]})
    )
    assert [rank.rank for rank in read_job(tmp_path / "job").ranks] == [0]


def test_nodes_add_their_ranks_to_what_others_wrote(tmp_path: Path) -> None:
    for number, host in enumerate(("n1", "n2")):
        write_job(
            tmp_path, [write_rank(tmp_path, rank_profile(WORK, number, host=host))], [tmp_path / "launcher.bragg"]
        )
    content = json.loads((tmp_path / INDEX).read_text())
    assert [row["rank"] for row in content["ranks"]] == [0, 1]
    assert (content["hosts"], content["others"]) == (["n1", "n2"], ["launcher.bragg"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, rank_file_name(0), rank_file_name(1)]


def test_lock_of_a_killed_writer_is_removed_and_that_of_a_living_one_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_files, "_LOCK_WAIT_S", 0.05)
    rank = write_rank(tmp_path, rank_profile(WORK, 0))
    lock = tmp_path / ".job.lock"
    lock.touch()
    write_job(tmp_path, [rank])
    assert not (tmp_path / INDEX).exists()
    os.utime(lock, (0, 0))
    write_job(tmp_path, [rank])
    assert (tmp_path / INDEX).exists()
    assert not lock.exists()


def test_of_thousands_of_listed_profiles_none_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [Rank(number, tmp_path / rank_file_name(number), world=20_001) for number in range(20_000)]
    for rank in ranks:
        rank.path.touch()
    write_job(tmp_path, ranks)

    def opened(path: Path) -> None:
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr(job_files, "read_meta", opened)
    job = read_job(tmp_path)
    assert (len(job.ranks), job.problems) == (20_000, ("rank 20000 of 20001 without a profile",))
