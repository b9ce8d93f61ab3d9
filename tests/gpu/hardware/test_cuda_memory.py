"""Memory that is taken from CUDA itself, on a real GPU: known amounts by call path, without PyTorch's segments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.conftest import record

pytestmark = pytest.mark.cuda

_MIB = 1 << 20
_SCOPES = ("tensors", "plain", "pool", "freed", "managed", "mapped", "unmapped")


@pytest.mark.parametrize("segments", ["", "expandable_segments:True"])
def test_known_memory_is_told_by_who_took_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments: str) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", segments)
    profile = record(tmp_path, "cuda_memory.py", "--memory").profile
    tree = profile.tree
    found: dict[str, Counter[str]] = {}
    for metric in ("cuda_memory_peak", "cuda_memory_end", "cuda_memory_taken", "gpu_memory_peak"):
        own = profile.own(metric)
        found[metric] = Counter()
        for node in np.flatnonzero(own).tolist():
            path = [tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]]
            scope = next((name for name in path if name in _SCOPES), " > ".join(path))
            found[metric][scope] += int(own[node])
    print(found)
    assert found["cuda_memory_peak"]["plain"] == 96 * _MIB
    assert found["cuda_memory_peak"]["pool"] == 32 * _MIB
    assert found["cuda_memory_end"]["plain"] == 96 * _MIB
    assert found["cuda_memory_end"]["pool"] == 0
    assert found["cuda_memory_taken"]["freed"] == 64 * _MIB
    assert found["cuda_memory_end"]["managed"] == 8 * _MIB
    assert found["cuda_memory_end"]["mapped"] == 20 * _MIB
    assert found["cuda_memory_taken"]["unmapped"] == 6 * _MIB
    assert found["cuda_memory_end"]["unmapped"] == 0
    assert found["cuda_memory_taken"]["tensors"] == 0
    assert found["gpu_memory_peak"]["tensors"] == 192 * _MIB
