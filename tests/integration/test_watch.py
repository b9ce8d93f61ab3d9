"""A job that hangs is told of while it does: `bragg run --watch`, on the CPU."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE_MS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

# Rank 1 goes on when the other has been told of, at the latest after a minute.
_PROGRAM = """
import pathlib, sys, time
import torch
from torch import distributed, multiprocessing

def load(told):
    until = time.monotonic() + 60
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.05)

def train(rank, directory):
    distributed.init_process_group("gloo", init_method=f"file://{directory}/meeting", rank=rank, world_size=2)
    x = torch.ones(4)
    for _ in range(3):
        distributed.all_reduce(x)
    if rank == 1:
        load(pathlib.Path(directory, "told"))
    distributed.all_reduce(x)
    distributed.destroy_process_group()

if __name__ == "__main__":
    multiprocessing.spawn(train, (sys.argv[1],), nprocs=2)
"""


def test_the_rank_that_others_wait_for_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(_PROGRAM)
    command = [sys.executable, "-m", "bragg", "run", "--no-summary", "--watch", "0.5s", "job.py", str(tmp_path)]
    heard: list[str] = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            heard.append(line)
            if "waits at" in line:
                (tmp_path / "told").touch()
        assert running.wait(PATIENCE_MS / 1000) == 0
    text = "".join(heard)
    assert re.search(
        r"1 rank waits for \d+ s in gloo:all_reduce, collective 4 of gloo; rank 1 has not entered it", text
    )
    assert "rank 1 stands at job.py:9@load, after collective 3" in text
    assert "rank 0 waits at job.py:18@train" in text
