"""SIGKILL at a random moment: nothing that was flushed is lost, and no file has a profile's name that is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.killed_runs import MODES, kill_at_random

# BRAGG_KILL_ROUNDS=200 for a thousand kills, of about 2.5 s each; benchmarks/killed.py counts what was lost.
_ROUNDS = int(os.environ.get("BRAGG_KILL_ROUNDS", "1"))


@pytest.mark.parametrize("seed", range(_ROUNDS))
@pytest.mark.parametrize("mode", MODES)
def test_what_was_flushed_survives_a_kill(mode: str, seed: int, tmp_path: Path, fakes_directory: Path) -> None:
    left = kill_at_random(mode, seed, tmp_path / "run", fakes_directory)
    assert left.damaged == []
    assert left.recovered >= left.flushed, left.talk
