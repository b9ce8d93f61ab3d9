"""Tests on a real GPU: `pytest -m cuda tests/gpu`. Every recording is of a program in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bragg
from bragg.model import FrameKind, Profile

PROGRAMS = Path(__file__).parent / "programs"


class Recorded:
    """What `bragg run` left behind.

    Attributes:
        exit_code: Of the target.
        stdout: Of the target and of bragg.
        stderr: The same.
        profiles: One a process, the main process's first.
        path: Of the first of them.
    """

    def __init__(self, done: subprocess.CompletedProcess[str], directory: Path) -> None:
        self.exit_code = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        paths = sorted(directory.rglob("*.bragg"), key=lambda path: (len(path.name), path))  # of a job: by rank
        self.profiles = [bragg.load(path) for path in paths]
        self.path = next(iter(paths), None)

    @property
    def profile(self) -> Profile:
        """The only one."""
        assert len(self.profiles) == 1, self.stderr
        return self.profiles[0]


def record(
    directory: Path, program: str, *options: str, arguments: Sequence[str] = (), expect: int = 0, **variables: str
) -> Recorded:
    """Run a program of this folder under `bragg run`, with its profiles in a directory."""
    output = directory / "profiles"
    command = [sys.executable, "-m", "bragg", "run", "--backend", "cuda", "-o", f"{output}/run.bragg", *options]
    done = subprocess.run(
        [*command, str(PROGRAMS / program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return Recorded(done, output)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Recorded]:
    """Runs a program of this folder under `bragg run`."""
    return partial(record, tmp_path)


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a program of this folder as it is, in a scratch directory; gives the lines it prints."""

    def python(program: str, *arguments: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / program), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return python


def kernel_count(profile: Profile, under: str = "") -> int:
    """Launches of kernels, those below frames of a name only if it is given."""
    return int(profile.own("gpu_count")[kernel_nodes(profile, under)].sum())


def kernel_nodes(profile: Profile, under: str = "") -> np.ndarray:
    """Nodes of kernels: int [n]."""
    tree = profile.tree
    kernels = np.flatnonzero(tree.kind == FrameKind.KERNEL)
    return np.array([node for node in kernels if not under or under in names_above(profile, node)], int)


def names_above(profile: Profile, node: int) -> list[str]:
    """Names of a node's frames, the outermost first."""
    return [profile.tree.frames.name[profile.tree.frame[above]] for above in profile.tree.path(node)]
