"""Programs on the fake driver and the fake CUPTI, recorded by `bragg run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bragg.model import FrameKind, Profile
from tests.support import fake_cuda

SUPPORT = Path(fake_cuda.__file__).parent
START = """
import bragg
from fake_cuda import Copy, FakeCuda
gpu = FakeCuda()
"""


@dataclass(frozen=True, eq=False)
class Run:
    """What `bragg run` left: its exit code and talk, and the profiles, the main process's first."""

    exit_code: int
    talk: str
    profiles: list[Profile]

    @property
    def main(self) -> Profile:
        return self.profiles[0]


Record = Callable[..., Run]


def kernels(profile: Profile) -> dict[str, int]:
    """Launches by path of names, below the root."""
    tree, counts = profile.tree, profile.own("gpu_count")
    nodes = np.flatnonzero((tree.kind == FrameKind.KERNEL) | (tree.kind == FrameKind.MEMORY))
    names = {node: "/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]) for node in nodes}
    return {name: sum(int(counts[node]) for node in nodes if names[node] == name) for name in names.values()}


def statistics(run: Run) -> dict[str, int]:
    return {str(name): int(value) for name, value in run.main.meta["statistics"].items()}
