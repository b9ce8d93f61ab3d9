from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.straggler_jobs import JobPlan, write_job_files
from bragg.cli.profile_file import newest_profile, newest_profile_or_job
from bragg.errors import BadFile
from tests.support.iprof_trace import iprof_trace
from tests.support.jobs import job_of
from tests.unit.cli.conftest import Bragg

FAST = "root\n  step\n    k 10ms x2\n    other 1ms"
SLOW = "root\n  step\n    k 30ms x2\n    other 1ms"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return job_of(tmp_path / "job", FAST, SLOW, FAST)


def shown(bragg: Bragg, job: Path, *arguments: str) -> list[list[str]]:
    """The words of each line of a view."""
    return [line.split() for line in bragg("view", str(job), *arguments).stdout.splitlines()]


def test_rows_show_mean_worst_best_and_imbalance(bragg: Bragg, job: Path) -> None:
    lines = shown(bragg, job)
    assert lines[1][:4] == ["3", "ranks", "·", "1"]
    header = next(line for line in lines if line and line[0] == "gpu_time_mean")
    assert header == [
        *("gpu_time_mean", "ms", "share", "worst", "ms", "worst_rank", "best", "ms", "best_rank", "imbalance", "%"),
        *("gpu_count_mean", "call", "path"),
    ]
    row = next(line for line in lines if line and line[-1] == "k")
    assert [row[0], *row[4:10]] == ["16.67", "30.00", "1", "10.00", "0", "80.00", "2"]


def test_where_lines_are_short_the_columns_leave_room_for_call_paths(
    bragg: Bragg, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    header = next(line for line in bragg("view", str(job)).stdout.splitlines() if line.startswith("gpu_time_mean"))
    assert header.split() == [
        "gpu_time_mean",
        "ms",
        "share",
        "worst",
        "ms",
        "worst_rank",
        "imbalance",
        "%",
        "call",
        "path",
    ]
    assert header.index("call path") <= 75


def test_table_shows_the_same(bragg: Bragg, job: Path) -> None:
    row = next(line for line in shown(bragg, job, "--flat") if line and line[-1] == "k")
    assert [row[0], *row[4:10]] == ["16.67", "30.00", "1", "10.00", "0", "80.00", "2"]


def test_json_has_the_job_and_every_row(bragg: Bragg, job: Path) -> None:
    content: dict[str, Any] = json.loads(bragg("view", str(job), "--json").stdout)
    assert (content["view"], content["world"], content["launcher"]) == ("job", 3, "torchrun")
    assert [row["rank"] for row in content["ranks"]] == [0, 1, 2]
    (row,) = [row for row in content["rows"] if row["name"] == "k"]
    values = row["values"]
    assert (values["gpu_time_worst"], values["gpu_time_worst_rank"]) == (30_000_000, 1)
    assert values["gpu_time_imbalance"] == pytest.approx(80)


def test_rows_for_each_rank(bragg: Bragg, job: Path) -> None:
    rows = [line for line in shown(bragg, job, "--group-by", "rank") if "rank" in line[:-1] and line[-1] == "(n1)"]
    assert [(row[0], row[row.index("rank") + 1]) for row in rows] == [("31.00", "1"), ("11.00", "0"), ("11.00", "2")]


def test_imports_of_ranks_without_gpus_are_left_out_and_named(bragg: Bragg, tmp_path: Path) -> None:
    text = "root\n  a.py:2@work host=30ms\n  <frozen importlib._bootstrap>:1@_find_and_load host={}ms"
    job = job_of(tmp_path / "b.job", text.format(40), text.format(60))
    lines = bragg("view", job).stdout.splitlines()
    assert "imports took 50.0 ms a rank and are left out; with them: -m host_time" in lines
    assert not any("_find_and_load" in line for line in lines)
    assert any("_find_and_load" in line for line in bragg("view", job, "-m", "host_time").stdout.splitlines())


@pytest.mark.parametrize(("wanted", "name"), [("2", "rank00002"), ("worst", "rank00001"), ("best", "rank00002")])
def test_one_rank_is_shown_as_its_profile_is(bragg: Bragg, job: Path, wanted: str, name: str) -> None:
    assert bragg("view", str(job), "--rank", wanted).stdout == bragg("view", str(job / f"{name}.bragg")).stdout


def test_rank_that_is_not_there_is_a_usage_error(bragg: Bragg, job: Path) -> None:
    ended = bragg("view", str(job), "--rank", "7")
    assert (ended.exit_code, "Known: 0 to 2, worst, best, median" in ended.stderr) == (2, True)
    assert bragg("view", str(job / "rank00000.bragg"), "--rank", "0").exit_code == 2


def test_what_is_wrong_is_said_and_the_rest_is_shown(bragg: Bragg, job: Path) -> None:
    (job / "rank00002.bragg").write_bytes(b"PK\x03\x04 cut")
    ended = bragg("view", str(job))
    assert ended.exit_code == 0
    assert "warning: " in ended.stderr
    assert "rank00002.bragg is damaged" in ended.stderr
    assert "2 ranks of 3" in ended.stdout


def test_ranks_that_were_killed_are_named(bragg: Bragg, tmp_path: Path) -> None:
    job = job_of(tmp_path / "cut.job", "root\n  k 1ms", "root\n  k 1ms", capture={"complete": False})
    warning = "warning: the recording of ranks 0-1 has no end, so sums are too low: killed, or still running"
    for verb in ("view", "tally"):
        assert bragg(verb, str(job)).stderr.splitlines() == [warning]


def test_the_worst_rank_is_the_one_that_the_others_wait_for(bragg: Bragg, tmp_path: Path) -> None:
    """It has least GPU time, since it waits for nobody."""
    plan = JobPlan(n_ranks=3, n_steps=20, n_layers=1, gpu=lambda rank, _: 1.5 if rank == 1 else 1.0)
    write_job_files(plan, job := tmp_path / "train.job")
    assert "note: this is rank 1 of 3, which the others wait for" in bragg("info", str(job)).stderr
    first = {wanted: shown(bragg, job, "--rank", wanted)[0][0] for wanted in ("worst", "best", "median")}
    assert first["worst"] == f"{job}/rank00001.bragg:"
    assert len(set(first.values())) == 3


def test_other_commands_take_the_worst_rank_and_say_so(bragg: Bragg, job: Path) -> None:
    for verb in ("info", "analyze"):
        ended = bragg(verb, str(job))
        assert ended.exit_code == 0
        assert "note: this is rank 1 of 3, with the most gpu_time" in ended.stderr
    assert newest_profile(job) == job / "rank00001.bragg"


def test_newest_may_be_a_job(tmp_path: Path, job: Path) -> None:
    (tmp_path / "old.bragg").touch()
    os.utime(tmp_path / "old.bragg", (1, 1))
    assert newest_profile_or_job(None, tmp_path) == job


def test_job_without_a_readable_rank_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", FAST)
    (job / "rank00000.bragg").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(BadFile, match="can be read"):
        newest_profile(job)


def test_verbs_take_a_directory_of_other_profilers_and_name_the_rank_that_cannot_be_read(
    bragg: Bragg, tmp_path: Path
) -> None:
    for rank in range(2):
        (tmp_path / f"iprof.{rank}.pftrace").write_bytes(iprof_trace((f"x{rank}",)))
    (tmp_path / "iprof.2.pftrace").write_bytes(iprof_trace()[:-3])
    viewed = bragg("view", str(tmp_path), "--json")
    content: dict[str, Any] = json.loads(viewed.stdout)
    assert [row["file"] for row in content["ranks"]] == ["iprof.0.pftrace", "iprof.1.pftrace"]
    assert [row["values"]["gpu_time_mean"] for row in content["rows"] if row["name"] == "matmul"] == [300]
    assert "iprof.2.pftrace is damaged" in viewed.stderr
    tally = json.loads(bragg("tally", str(tmp_path), "--json").stdout)
    (calls,) = [each["rows"] for each in tally["sections"] if each["title"] == "device"]
    assert [(row["name"], row["calls"]) for row in calls] == [("matmul", 2), ("cuMemcpyHtoDAsync_v2", 2)]
    written = json.loads(bragg("report", str(tmp_path), "-o", str(tmp_path / "page.html"), "--json").stdout)
    assert Path(written["file"]).name == "iprof.0.pftrace"
    assert bragg("diff", str(tmp_path), str(tmp_path)).exit_code == 0
