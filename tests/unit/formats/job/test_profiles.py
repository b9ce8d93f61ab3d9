from __future__ import annotations

from pathlib import Path

import pytest

import bragg
from bragg.errors import BadFile
from tests.support.jobs import job_of


def test_profiles_of_a_job_are_found_by_rank(tmp_path: Path) -> None:
    ranks = bragg.load_job(job_of(tmp_path / "a.job", "root\n  k 1ms", "root\n  k 3ms"), trace=False)
    assert (list(ranks), len(ranks), 1 in ranks, 2 in ranks) == ([0, 1], 2, True, False)
    assert {rank: profile.total("gpu_time") for rank, profile in ranks.items()} == {0: 1e6, 1: 3e6}
    assert repr(ranks) == f"<JobProfiles of 2 ranks: {tmp_path / 'a.job'}>"
    with pytest.raises(KeyError):
        ranks[2]


def test_no_profile_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    job = job_of(tmp_path / "a.job", "root\n  k 1ms", "root\n  k 3ms")
    ranks = bragg.load_job(str(job))
    (job / "rank00000.bragg").write_bytes(b"PK\x03\x04 damaged")
    assert ranks[1].total("gpu_time") == 3e6
    with pytest.raises(BadFile, match="rank00000"):
        ranks[0]


def test_missing_ranks_are_told(tmp_path: Path) -> None:
    job = job_of(tmp_path / "a.job", "root\n  k 1ms", "root\n  k 3ms")
    (job / "rank00001.bragg").unlink()
    ranks = bragg.load_job(job)
    assert list(ranks) == [0]
    assert ranks.job.problems == ("job.json lists rank00001.bragg, which is not there",)


def test_profile_loader_names_the_loader_of_jobs(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as refused:
        bragg.load(job_of(tmp_path / "a.job", "root\n  k 1ms"))
    assert "bragg.load_job" in refused.value.hint
    with pytest.raises(BadFile, match="is not the directory of a job"):
        bragg.load_job(tmp_path / "none")
