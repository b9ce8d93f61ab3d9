"""Memory by call path against PyTorch's own snapshot, on a real GPU."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bragg.model import FrameKind, Profile
from bragg.model.meta.gpu_memory import AT_PEAK, free_memory_of, gpu_memory_of
from tests.gpu.conftest import record

pytestmark = pytest.mark.cuda


def by_function(profile: Profile) -> dict[str, int]:
    """Bytes at the peak by the function of the program that called `bytes_of`."""
    tree, held, found = profile.tree, profile.own(AT_PEAK), Counter[str]()
    for node in held.nonzero()[0].tolist():
        frames = [tree.frame[step] for step in tree.path(node)]
        names = [
            tree.frames.name[frame]
            for frame in frames
            if tree.frames.kind[frame] == FrameKind.PYTHON and tree.frames.file[frame].endswith("memory.py")
        ]
        found[names[-2] if len(names) > 1 else "?"] += int(held[node])
    return dict(found)


def test_the_peak_by_call_path_is_that_of_the_snapshot(tmp_path: Path) -> None:
    recorded = record(tmp_path, "memory.py", "--memory", "--context=python")
    snapshot = json.loads(recorded.stdout.splitlines()[-1])
    told = gpu_memory_of(recorded.profile.meta)
    assert told is not None
    (memory,) = told.devices
    print(snapshot, memory)
    assert memory.peak_bytes == snapshot["peak"] == sum(snapshot["held"].values())
    assert memory.most_reserved_bytes == snapshot["reserved"]
    assert by_function(recorded.profile) == snapshot["held"]
    (free,) = free_memory_of(recorded.profile.meta)  # at the end all of it is
    print(free)
    assert free.free_bytes == free.reserved_bytes == snapshot["reserved"]
    assert free.largest_bytes >= 100 << 20
