"""What tests of whole programs share."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from bragg import load
from tests.support import fake_cuda
from tests.support.fake_gpu_runs import CAPTURE, START, SUPPORT, Record, Run


@pytest.fixture
def record(tmp_path: Path, fakes_directory: Path) -> Record:
    """Runs a program under `bragg run`, by default Python with `gpu`, a fake device.

    Keyword arguments in capitals are settings of the fakes, the others options of `bragg run`, as are flags.
    """

    def run(body: str, start: str = START, *given: str, command: list[str] | None = None, **options: object) -> Run:
        script = tmp_path / "program.py"
        script.write_text(start + dedent(body))
        settings = {name: value for name, value in options.items() if name.isupper()}
        wishes = {"backend": "cuda", "context": "shadow", "output": tmp_path / "out.bragg"}
        wishes |= {name: value for name, value in options.items() if not name.isupper()}
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in wishes.items()]
        environ = {**os.environ, **fake_cuda.environment(fakes_directory, settings), "PYTHONPATH": str(SUPPORT)}
        argv = [sys.executable, "-m", "bragg", "run", *flags, *given, *(command or [str(script)])]
        for earlier in tmp_path.glob("out*.bragg"):  # else this run's get other names
            earlier.unlink()
        done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        paths = sorted(tmp_path.glob("out*.bragg"), key=lambda path: (len(path.name), path.name))
        return Run(done.returncode, done.stderr, [load(path) for path in paths], done.stdout)

    return run


@pytest.fixture
def record_graphs(record: Record) -> Record:
    """`record`, for programs that capture and replay."""
    return partial(record, start=START + CAPTURE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to record in, and the environment as it was."""
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    for name in ("INTEL_LIBITTNOTIFY64", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        os.environ.pop(name, None)


@pytest.fixture
def finalized(here: Path) -> Iterator[None]:
    """The same, and no session of `bragg.proton` is left after the test."""
    import bragg.proton as proton

    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        proton.finalize()
