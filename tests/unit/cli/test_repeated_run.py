from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Bragg

BUSY = """
import sys, time
from pathlib import Path
count = Path("count")
count.write_text(count.read_text() + "x" if count.exists() else "x")
end = time.thread_time() + 0.05
while time.thread_time() < end:
    sum(range(100))
sys.exit(3 if len(sys.argv) > 1 and len(count.read_text()) == 2 else 0)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that is busy for a while; with an argument its second run fails."""
    path = tmp_path / "busy.py"
    path.write_text(BUSY)
    return path


def test_runs_are_numbered_and_can_be_compared(bragg_process: Bragg, script: Path, tmp_path: Path) -> None:
    outcome = bragg_process("run", "--repeat", "3", "-o", "old", script)
    assert outcome.exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("*.bragg")) == ["old-1.bragg", "old-2.bragg", "old-3.bragg"]
    lines = outcome.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["run 1 of 3", "run 2 of 3", "run 3 of 3"]
    assert lines[3].startswith("3 runs: host_time ")
    assert lines[4].endswith("bragg diff old-*.bragg after-*.bragg")
    again = bragg_process("run", "--repeat", "2", "-o", "old.bragg", script)
    assert (again.exit_code, again.stderr.splitlines()[0]) == (2, "error: old-1.bragg exists")
    compared = bragg_process("diff", *sorted(map(str, tmp_path.glob("*.bragg"))), "--gate", "total")
    assert compared.exit_code == 2  # one set
    assert (tmp_path / "count").read_text() == "xxx"


def test_a_run_that_fails_is_the_last(bragg_process: Bragg, script: Path, tmp_path: Path) -> None:
    outcome = bragg_process("run", "--repeat", "3", "--json", script, "fail")
    assert outcome.exit_code == 3
    assert "error: run 2 of 3 ended with exit code 3\n" in outcome.stderr
    runs = json.loads(outcome.stdout.splitlines()[-1])["runs"]
    assert [run["exit_code"] for run in runs] == [0, 3]
    assert (tmp_path / "busy-2.bragg").exists()
    assert not (tmp_path / "busy-3.bragg").exists()


def test_a_directory_gets_the_set(bragg_process: Bragg, script: Path, tmp_path: Path) -> None:
    assert bragg_process("run", "--repeat", "1", "-o", "old/", script).exit_code == 0
    assert (tmp_path / "old" / "busy-1.bragg").exists()
