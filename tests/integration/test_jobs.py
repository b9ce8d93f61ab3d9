"""Programs of several ranks, recorded by `bragg run`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from bragg.formats import load
from bragg.formats.job.directory import read_job
from bragg.formats.job.summaries import read_summary
from tests.support.runs import FLUSHED, IS_BUSY

LIMIT_S = 300
LAUNCHER = """
import os, subprocess, sys
def start(rank):
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3"}
    return subprocess.Popen([sys.executable, "train.py"], env={**os.environ, **place})
ranks = [start(rank) for rank in range(3)]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""
RANK = """
import bragg, os, sys, time
with bragg.scope("step"): time.sleep(0.01)
"""


def bragg_run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bragg", "run", "--backend", "cpu", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def write(directory: Path, **programs: str) -> None:
    for name, text in programs.items():
        (directory / f"{name}.py").write_text(dedent(text))


def test_ranks_and_what_they_start_are_a_job_and_the_launcher_is_not(tmp_path: Path) -> None:
    helper = f"\nif os.environ['RANK'] == '1': import subprocess; subprocess.run([sys.executable, '-c', '''{RANK}'''])"
    write(tmp_path, launch=LAUNCHER, train=RANK + helper)
    ended = bragg_run(tmp_path, "launch.py")
    assert ended.returncode == 0, ended.stderr
    assert "Wrote train.job/ (3 ranks and 1 other process, " in ended.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".py"] == ["train.job"]
    job = read_job(tmp_path / "train.job")
    assert [(rank.rank, rank.local_rank, rank.program) for rank in job.ranks] == [(n, n, "train.py") for n in range(3)]
    assert [len(rank.helpers) for rank in job.ranks] == [0, 1, 0]
    assert (job.world, job.others, job.problems) == (3, (), ())


def test_killed_rank_keeps_what_it_had_recorded(tmp_path: Path) -> None:
    die = "if os.environ['RANK'] == '2': wait_until_flushed('step'); os.kill(os.getpid(), 9)"
    write(tmp_path, launch=LAUNCHER, train=f"{FLUSHED}{RANK}\n{die}")
    ended = bragg_run(tmp_path, "--flush-interval", "50", "-o", "job/", "launch.py")
    assert ended.returncode == 9
    job = read_job(tmp_path / "job")
    assert [rank.rank for rank in job.ranks] == [0, 1, 2]
    assert [load(rank.path).run.is_cut_short for rank in job.ranks] == [False, False, True]


@pytest.mark.parametrize("run_id", ["77", ""])
def test_each_rank_may_be_recorded_by_itself(tmp_path: Path, run_id: str) -> None:
    write(tmp_path, train=RANK)
    command = [sys.executable, "-m", "bragg", "run", "--backend", "cpu", "--no-summary", "train.py"]
    running = []
    for rank in range(4):
        place = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4", "OMPI_MCA_ess_base_jobid": run_id}
        environ = {**os.environ, **place}
        running.append(subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL))
    assert [each.wait(LIMIT_S) for each in running] == [0] * 4
    job = read_job(tmp_path / "train.job")
    assert ([rank.rank for rank in job.ranks], job.run_id, job.launcher) == ([0, 1, 2, 3], run_id, "mpi")
    assert (job.problems, sorted(path.name for path in tmp_path.iterdir())) == ((), ["train.job", "train.py"])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_processes_of_pytorch_say_which_rank_they_are(tmp_path: Path) -> None:
    """No launcher tells the rank, and the process group is gone at the end."""
    write(
        tmp_path,
        spawned="""
        import tempfile, torch
        from torch import distributed, multiprocessing

        def work(rank, place):
            distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
            distributed.init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
            distributed.all_reduce(torch.ones(4))
            distributed.destroy_process_group()

        if __name__ == "__main__":
            with tempfile.TemporaryDirectory() as directory:
                multiprocessing.spawn(work, (f"{directory}/place",), nprocs=2)
        """,
    )
    ended = bragg_run(tmp_path, "--data", "trace", "spawned.py")
    assert ended.returncode == 0, ended.stderr
    job = read_job(tmp_path / "spawned.job")
    assert [(rank.rank, dict(rank.coordinates)) for rank in job.ranks] == [
        (0, {"dp": 0, "tp": 0}),
        (1, {"dp": 0, "tp": 1}),
    ]
    assert (job.world, job.launcher) == (2, "program")
    summaries = [summary for rank in job.ranks if (summary := read_summary(rank.path))]
    assert [(each.is_on_cpus, each.is_whole, each.calls.operation[-1]) for each in summaries] == [
        (True, True, "all-reduce")
    ] * 2


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_a_process_group_whose_store_keeps_nothing_is_recorded_in_silence(tmp_path: Path) -> None:
    write(
        tmp_path,
        alone="""
        from torch import distributed
        from torch.testing._internal.distributed.fake_pg import FakeStore

        distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
        distributed.destroy_process_group()
        """,
    )
    ended = bragg_run(tmp_path, "--no-summary", "alone.py")
    assert ended.returncode == 0, ended.stderr
    (said,) = (line for line in ended.stderr.splitlines() if not line.startswith(IS_BUSY))
    assert said.startswith("Wrote alone.job/ (1 rank, ")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_processes_of_jax_say_which_rank_they_are(tmp_path: Path) -> None:
    """JAX forgets it before the end of the program."""
    write(
        tmp_path,
        meet="""
        import jax, socket, subprocess, sys

        if sys.argv[1:]:
            jax.distributed.initialize(sys.argv[2], 2, int(sys.argv[1]))
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{free.getsockname()[1]}"
            started = [subprocess.Popen([sys.executable, "meet.py", str(rank), address]) for rank in range(2)]
            sys.exit(max(abs(each.wait()) for each in started))
        """,
    )
    ended = bragg_run(tmp_path, "meet.py")
    assert ended.returncode == 0, ended.stderr
    job = read_job(tmp_path / "meet.job")
    assert ([rank.rank for rank in job.ranks], job.world, job.launcher) == ([0, 1], 2, "program")
