"""What tests of every kind share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# Machines differ in speed, so no example is ever too slow; in continuous integration the same examples run every time.
settings.register_profile("bragg", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("bragg")

# A job of many ranks names profiles otherwise, a shell may decide on colour, a worker of pytest on the width of lines.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
for _variable in (*_RANKS, "NO_COLOR", "FORCE_COLOR", "COLUMNS", "BRAGG_LOG"):
    os.environ.pop(_variable, None)
os.unsetenv("COLUMNS")  # readline sets it without Python, for child processes alone

# A shell without job control lets what it starts in the background ignore Ctrl-C, and with it all that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Triton's cache of a user may hold the same kernels, compiled from files of another checkout.
os.environ.setdefault("TRITON_CACHE_DIR", str(ROOT / "build" / "triton"))


@pytest.fixture(scope="session")
def fakes_directory() -> Path:
    """Where the fake libcuda and libcupti are, built with the native tests."""
    directory = Path(os.environ.get("BRAGG_FAKES_DIR", ROOT / "build" / "native" / "fakes"))
    if not directory.is_dir():
        pytest.fail(f"{directory} is missing; run: make native-test")
    return directory
