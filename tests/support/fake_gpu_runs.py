"""Programs on the fake driver and the fake CUPTI, recorded by `bragg run`."""

from __future__ import annotations

from collections import Counter
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
# What programs that capture and replay have besides.
CAPTURE = """
stream = gpu.stream()
def captured(*names, scope=None):
    with bragg.scope(scope or "capture"), gpu.capture(stream) as graph:
        for name in names: gpu.launch(name, stream)
    return graph
def replay(executable, count=1, scope="replay"):
    with bragg.scope(scope): gpu.launch_graph(executable, stream, count)
    gpu.synchronize()
"""


@dataclass(frozen=True, eq=False)
class Run:
    """What `bragg run` left: exit code and talk, the profiles, the main process first, and what the program printed."""

    exit_code: int
    talk: str
    profiles: list[Profile]
    output: str = ""

    @property
    def main(self) -> Profile:
        return self.profiles[0]


Record = Callable[..., Run]


def path_of(profile: Profile, node: int) -> str:
    """Names from below the root down to a node."""
    tree = profile.tree
    return "/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:])


def kernels(profile: Profile) -> dict[str, int]:
    """Launches by path of names."""
    tree, counts = profile.tree, profile.own("gpu_count")
    nodes = np.flatnonzero((tree.kind == FrameKind.KERNEL) | (tree.kind == FrameKind.MEMORY))
    found: Counter[str] = Counter()
    for node in nodes.tolist():
        found[path_of(profile, node)] += int(counts[node])
    return dict(found)


def values(profile: Profile, metric: str) -> dict[str, float]:
    """A metric's own values by path of names, where they are not 0."""
    own = np.nan_to_num(profile.own(metric))
    return {path_of(profile, node): own[node].item() for node in np.flatnonzero(own).tolist()}


def statistics(run: Run) -> dict[str, int]:
    return {str(name): int(value) for name, value in run.main.meta["statistics"].items()}
