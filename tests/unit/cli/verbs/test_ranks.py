from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.straggler_jobs import HEALTHY, KINDS, JobPlan, write_job_files
from tests.unit.cli.conftest import Bragg


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("job")
    write_job_files(KINDS["slow-gpu-since"], directory)
    return directory


def test_the_first_sentence_names_the_rank_and_what_it_costs(bragg: Bragg, job: Path) -> None:
    lines = bragg("ranks", job).stdout.splitlines()
    assert lines[0].startswith("Rank 5 costs the job 11.9 % of its time: 8 ranks over 40 steps and 160 collectives.")
    assert "holds up the other 7 ranks by 2.56 ms of each 12.1 ms step from step 20 on" in lines[1]
    assert "its GPU takes 1.30 times as long for the same kernels" in lines[1]
    assert len(lines) <= 25


def test_files_are_as_good_as_a_directory(bragg: Bragg, job: Path) -> None:
    assert bragg("ranks", *sorted(job.glob("*.bragg"))).stdout == bragg("ranks", job).stdout


def test_json_has_all_ranks_and_steps(bragg: Bragg, job: Path) -> None:
    values = json.loads(bragg("ranks", job, "--json").stdout)
    assert values["schema"] == "bragg/1"
    assert values["ranks"] == list(range(8))
    (late,) = values["stragglers"]
    assert (late["rank"], late["when"], late["cause"], late["steps"][0]) == (5, "since", "slow GPU", 20)
    assert len(values["steps"]["cost_ns"]["5"]) == len(values["steps"]["step_ns"]) == 39
    assert values["findings"][0]["rule"] == "straggler"


def test_a_healthy_job_is_told_so(bragg: Bragg, tmp_path: Path) -> None:
    write_job_files(HEALTHY["healthy-2"], tmp_path)
    assert bragg("ranks", tmp_path).stdout.startswith("No rank holds up the others: 4 ranks over 40 steps")


def test_one_rank_cannot_be_compared(bragg: Bragg, job: Path) -> None:
    outcome = bragg("ranks", job / "rank00000.bragg")
    assert outcome.exit_code == 2
    assert "comparing ranks needs two of them" in outcome.stderr


def test_a_damaged_rank_is_told_and_the_rest_is_compared(bragg: Bragg, tmp_path: Path) -> None:
    files = write_job_files(JobPlan(n_ranks=3, n_steps=6, n_layers=1), tmp_path)
    files[1].write_bytes(files[1].read_bytes()[:500])
    outcome = bragg("ranks", *files)
    assert outcome.exit_code == 0
    assert "2 ranks over 6 steps" in outcome.stdout
    assert "rank00001.bragg is damaged" in outcome.stdout


def test_two_profiles_of_one_rank_are_not_used(bragg: Bragg, tmp_path: Path) -> None:
    files = write_job_files(JobPlan(n_ranks=3, n_steps=6, n_layers=1), tmp_path)
    again = tmp_path / "again.bragg"
    again.write_bytes(files[2].read_bytes())
    outcome = bragg("ranks", *files, again)
    assert "2 profiles say that they are of rank 2: none of them is used" in outcome.stdout


def test_analyze_tells_of_the_straggler_of_a_job(bragg: Bragg, job: Path) -> None:
    found = json.loads(bragg("analyze", job, "--json").stdout)["profiles"][0]["findings"]
    (late,) = (each for each in found if each["rule"] == "straggler")
    assert late["message"].startswith("rank 5 holds up the other 7 ranks by 2.56 ms")
    assert "straggler" in bragg("analyze", job).stdout or "rank 5 holds up" in bragg("analyze", job).stdout


def test_why_no_rank_could_be_used_is_told(bragg: Bragg, tmp_path: Path) -> None:
    outcome = bragg("ranks", tmp_path / "gone.bragg", tmp_path / "too.bragg")
    assert outcome.exit_code == 2
    assert "gone.bragg" in outcome.stderr
