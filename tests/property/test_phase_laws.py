"""Phases of any program add up to one recording of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import fake_cuda


def test_phases_add_up_to_the_whole(tmp_path: Path, fakes_directory: Path) -> None:
    program = Path(fake_cuda.__file__).with_name("phase_laws.py")
    environ = {**os.environ, **fake_cuda.environment(fakes_directory), "PYTHONPATH": str(program.parent)}
    done = subprocess.run(
        [sys.executable, program], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
