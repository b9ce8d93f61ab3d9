from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.main import main
from bragg.model import Profile
from tests.support.profiles import profile_from_text

TRAINING = """
root
  train.py:40@main
    forward
      matmul 12ms x3
      relu 3ms x3
    backward
      matmul 1ms x1
"""


@dataclass(frozen=True)
class Outcome:
    """What a command line did.

    Attributes:
        exit_code: As the shell would see it.
        stdout: Data.
        stderr: Talk.
        cpu_s: Processor time of a process of its own: on a busy machine the wall clock says nothing.
    """

    exit_code: int
    stdout: str
    stderr: str
    cpu_s: float = 0.0


Bragg = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No colour, no width, an empty directory."""
    for variable in ("COLUMNS", "FORCE_COLOR", "BRAGG_LOG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bragg(capsys: pytest.CaptureFixture[str]) -> Bragg:
    """Runs a command line in this process."""

    def bragg(*arguments: object) -> Outcome:
        exit_code = main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Outcome(exit_code, written.out, written.err)

    return bragg


@pytest.fixture
def bragg_process() -> Bragg:
    """Runs a command line in a process of its own."""

    def bragg_process(*arguments: object, **options: object) -> Outcome:
        command = [sys.executable, "-m", "bragg", *map(str, arguments)]
        before_s = children_cpu_s()
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
        return Outcome(done.returncode, done.stdout, done.stderr, children_cpu_s() - before_s)

    return bragg_process


def children_cpu_s() -> float:
    """Processor time of all processes that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.fixture
def training() -> Profile:
    """A small profile of a GPU program."""
    meta = {"command": ["/usr/bin/python3", "train.py"], "host": "gpubox", "backend": "cuda"}
    return replace(profile_from_text(TRAINING), meta=meta)


@pytest.fixture
def profile_file(training: Profile, tmp_path: Path) -> Path:
    """The same in a file."""
    path = tmp_path / "train.bragg"
    formats.export(training, "bragg", path)
    return path
