from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.straggler_jobs import KINDS, write_job_files
from tests.support.iprof_trace import iprof_trace
from tests.unit.cli.conftest import Bragg


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "iprof.pftrace"
    path.write_bytes(iprof_trace(("x2", "x1")))
    return path


def test_a_trace_of_one_process_is_not_written_as_a_job(tmp_path: Path, bragg: Bragg) -> None:
    path = tmp_path / "iprof.pftrace"
    path.write_bytes(iprof_trace())
    ended = bragg("export", path, "-f", "job")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: a job needs the timelines of two processes")
    assert not path.with_suffix(".job").exists()


def test_a_trace_that_is_written_as_a_job_is_shown_by_rank(trace: Path, bragg: Bragg) -> None:
    written = bragg("export", trace, "-f", "job", "--json")
    told = json.loads(written.stdout)
    job = Path(told["file"])
    assert told["size_bytes"] == sum(file.stat().st_size for file in job.iterdir())
    assert sorted(file.name for file in job.iterdir()) == ["job.json", "rank00000.bragg", "rank00001.bragg"]
    assert bragg("view", job).stdout.splitlines()[1] == "2 ranks · 2 hosts: x1, x2 · backend Perfetto"
    assert "matmul" in bragg("view", job, "--rank", "1").stdout
    assert bragg("export", trace, "-f", "job").exit_code == 2  # it exists
    assert bragg("export", trace, "-f", "job", "-o", "-").exit_code == 2


def test_ranks_of_one_trace_are_compared_under_their_numbers(tmp_path: Path, bragg: Bragg) -> None:
    plan = KINDS["slow-gpu"]
    write_job_files(plan, tmp_path / "train.job")
    assert bragg("export", tmp_path / "train.job", "-o", tmp_path / "all.pftrace", "-f", "perfetto").exit_code == 0
    ended = bragg("ranks", tmp_path / "all.pftrace", "--json")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["ranks"] == list(range(plan.n_ranks))
    assert [each["rank"] for each in found["stragglers"]] == list(plan.truth.ranks)
