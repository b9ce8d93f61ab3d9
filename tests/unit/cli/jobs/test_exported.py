from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from bragg.formats.encodings.protobuf import fields
from bragg.formats.job.directory import write_job
from tests.support.jobs import job_of, write_rank
from tests.support.traces import trace_from_text
from tests.unit.cli.conftest import Bragg


def traced_job(directory: Path, *durations: int, hosts: int = 1, kernel: str = "k") -> Path:
    """A job whose ranks ran one kernel each, so long."""
    ranks = []
    for number, duration in enumerate(durations):
        profile = trace_from_text(f"stream 1\n  1000-{1000 + duration} {kernel}")
        facts = {
            "rank": number,
            "ranks": len(durations),
            "host": f"n{number % hosts}",
            "pid": 7,
            "data": "trace",
        }
        ranks.append(write_rank(directory, replace(profile, meta=facts)))
    write_job(directory, ranks)
    return directory


def exported(bragg: Bragg, job: Path, *arguments: str) -> tuple[int, str]:
    """How many ranks were written, and what was said."""
    ended = bragg("export", job, "-f", "perfetto", "--json", *arguments)
    assert ended.exit_code == 0, ended.stderr
    content = json.loads(ended.stdout)
    assert Path(content["file"]).stat().st_size == content["size_bytes"] > 0
    return content["ranks"], ended.stderr


def test_all_ranks_are_in_one_file_beside_the_job(bragg: Bragg, tmp_path: Path) -> None:
    job = traced_job(tmp_path / "a.job", 5, 6, 7)
    assert exported(bragg, job) == (3, "")
    assert (tmp_path / "a.perfetto-trace").exists()


@pytest.mark.parametrize(("kernel", "n_linked"), [("ncclDevKernel_AllReduce", 2), ("k", 0)])
def test_collectives_are_linked_over_the_ranks(bragg: Bragg, tmp_path: Path, kernel: str, n_linked: int) -> None:
    job = traced_job(tmp_path / "a.job", 5, 6, kernel=kernel)
    exported(bragg, job)
    pieces = [dict(fields(piece))[50] for _, piece in fields((tmp_path / "a.perfetto-trace").read_bytes())]  # type: ignore[arg-type]
    assert sum(b"stream 0" in zlib.decompress(piece) for piece in pieces) == n_linked  # type: ignore[arg-type]


def test_of_many_ranks_three_of_each_role_are_chosen(bragg: Bragg, tmp_path: Path) -> None:
    job = traced_job(tmp_path / "a.job", *range(100, 117))
    n_ranks, said = exported(bragg, job)
    assert n_ranks == 3
    assert "of 17 ranks those with most, median and least gpu_time of each role: 0, 8, 16" in said
    assert exported(bragg, job, "--force", "--rank", "all")[0] == 17
    assert exported(bragg, job, "--force", "--rank", "3,worst")[0] == 2


def test_clocks_of_several_hosts_are_said_not_to_be_aligned(bragg: Bragg, tmp_path: Path) -> None:
    said = exported(bragg, traced_job(tmp_path / "a.job", 5, 6, hosts=2))[1]
    assert "no data aligns the clock of n1 with that of n0: their times are not compared" in said


def test_rank_without_a_timeline_is_left_out_and_named(bragg: Bragg, tmp_path: Path) -> None:
    job = traced_job(tmp_path / "a.job", 5, 6)
    job_of(tmp_path / "sums", "root\n  k 1ms")
    (tmp_path / "sums" / "rank00000.bragg").replace(job / "rank00000.bragg")
    n_ranks, said = exported(bragg, job)
    assert (n_ranks, "warning: rank 0 has no timeline and is left out" in said) == (1, True)


def test_job_without_timelines_is_a_usage_error_that_leaves_files_alone(bragg: Bragg, tmp_path: Path) -> None:
    job = job_of(tmp_path / "a.job", "root\n  k 1ms")
    (tmp_path / "a.perfetto-trace").write_text("precious")
    ended = bragg("export", job, "-f", "perfetto", "--force")
    assert (ended.exit_code, "--data trace" in ended.stderr) == (2, True)
    assert (tmp_path / "a.perfetto-trace").read_text() == "precious"


@pytest.mark.parametrize("arguments", [("-f", "collapsed"), ("-f", "collapsed", "--rank", "1")])
def test_other_formats_hold_one_rank(bragg: Bragg, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    job = job_of(tmp_path / "a.job", "root\n  slow 9ms", "root\n  fast 1ms")
    ended = bragg("export", job, *arguments, "-o", "-")
    assert (ended.exit_code, ended.stdout.split()[0]) == (0, "fast" if "--rank" in arguments else "slow")


def test_rank_of_a_single_profile_is_a_usage_error(bragg: Bragg, tmp_path: Path) -> None:
    job = traced_job(tmp_path / "a.job", 5)
    assert bragg("export", job / "rank00000.bragg", "-f", "perfetto", "--rank", "0").exit_code == 2


def test_stages_of_gpus_are_of_perfetto_alone_and_come_on_demand(bragg: Bragg, tmp_path: Path) -> None:
    job, target = traced_job(tmp_path / "a.job", 5, 6), tmp_path / "a.perfetto-trace"
    sizes = []
    for options in ([], ["--gpu-stages"]):
        assert bragg("export", str(job), "-f", "perfetto", "--force", *options).exit_code == 0
        sizes.append(target.stat().st_size)
    assert sizes[1] > sizes[0]
    ended = bragg("export", str(job), "-f", "chrome", "--gpu-stages")
    assert ended.exit_code == 2
    assert "--gpu-stages is of Perfetto's files" in ended.stderr
