"""The pure Python package, as on a machine that is not Linux: everything but recording."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import numpy as np
import pytest

from tests.support.recordings import SAMPLE

ROOT = Path(__file__).parents[2]
# What Windows has not.
_ELSEWHERE = """
import os, signal, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "getuid", "geteuid", "killpg", "setsid", "sched_getaffinity"):
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGUSR1", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
from bragg.cli.main import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an installed pure Python package."""
    directory = tmp_path_factory.mktemp("pure")
    options = [f"--config-settings={each}" for each in ("wheel.cmake=false", "wheel.py-api=py3", "wheel.platlib=false")]
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", str(ROOT)]
    subprocess.run([*build, "-w", str(directory), *options], check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(directory)
    return directory


def bragg(package: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    paths = [package, *(Path(module.__file__ or "").parents[1] for module in (np, click))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "NO_COLOR": "1"}
    command = [sys.executable, "-S", "-c", _ELSEWHERE, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["view", str(SAMPLE)], "gpu_time"),
        (["view", "--flat", str(SAMPLE)], "gpu_time"),
        (["info", str(SAMPLE)], "torch"),
        (["diff", str(SAMPLE), str(SAMPLE)], "no difference"),
        (["source", str(SAMPLE)], "tl.load"),
        (["demo"], "The GPU bounds most of the program"),
    ],
    ids=["view", "flat", "info", "diff", "source", "demo"],
)
def test_profiles_are_viewed(package: Path, tmp_path: Path, arguments: list[str], shown: str) -> None:
    done = bragg(package, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def test_reports_and_exports_are_written(package: Path, tmp_path: Path) -> None:
    for arguments in (["report", str(SAMPLE), "-o", "r.html"], ["export", str(SAMPLE), "-f", "chrome", "-o", "t.json"]):
        assert bragg(package, *arguments, cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "t.json").stat().st_size > 100_000


def test_recording_says_that_there_is_no_recorder(package: Path, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print('ran')")
    done = bragg(package, "run", "p.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert "error: bragg has no recorder for this Python: it can show profiles and debug Triton kernels" in done.stderr
    assert "hint: To record, install bragg on Linux from a wheel for this Python, or from source" in done.stderr


def test_the_examples_of_the_tutorials_come_with_the_package(package: Path, tmp_path: Path) -> None:
    assert bragg(package, "demo", "--files", cwd=tmp_path).returncode == 0
    assert (tmp_path / "examples/plain_python.py").read_text() == (ROOT / "examples/plain_python.py").read_text()
    assert bragg(package, "view", "sample-h100.bragg", cwd=tmp_path).returncode == 0
