"""PyTorch's allocator says what is free in its segments when the recording ends, and only if the program used a GPU."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.model.meta.gpu_memory import FreeMemory, free_memory_of
from bragg.record.hooks.torch import segments
from bragg.record.inside import metadata
from bragg.views.text.memory_facts import memory_json, memory_lines

MB = 1 << 20
FREE, USED, PENDING = "inactive", "active_allocated", "active_pending_free"


def segment(device: int, *blocks: tuple[str, int]) -> dict[str, Any]:
    listed = [{"state": state, "size": size} for state, size in blocks]
    return {"device": device, "total_size": sum(size for _, size in blocks), "blocks": listed}


SEGMENTS = [
    segment(1, (USED, 4 * MB), (FREE, 12 * MB), (USED, 3 * MB), (FREE, MB)),
    segment(1, (FREE, MB), (PENDING, MB)),
    segment(0, (USED, 2 * MB)),
]


def told_by(monkeypatch: pytest.MonkeyPatch, *, is_used: bool = True, is_end: bool = True) -> dict[str, Any]:
    torch: Any = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_initialized=lambda: is_used, memory_snapshot=lambda: SEGMENTS)
    monkeypatch.setattr(metadata, "_asked", {})
    segments.tell_segments(torch)
    return metadata.at_stop(is_end=is_end)


def test_free_pieces_are_counted_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = told_by(monkeypatch)
    full, split = free_memory_of(meta)
    assert full == FreeMemory(0, 1, 2 * MB, 0, ())
    assert split == FreeMemory(1, 2, 22 * MB, 12 * MB, ((MB, 2, 2 * MB), (8 * MB, 1, 12 * MB)))
    assert (split.free_bytes, split.pieces) == (14 * MB, 3)
    assert memory_lines(meta) == [
        "GPU 1 memory of the allocator at the end: 23.1 MB in 2 segments, 14.7 MB of it free in 3 pieces: "
        "the largest 12.6 MB, most in 1 of 8.39 MB to 16.8 MB"
    ]


def test_the_pieces_are_beside_the_peak_of_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {"devices": {"1": {"peak_bytes": 9 * MB, "most_reserved_bytes": 22 * MB, "allocations": 2}}}
    (row,) = memory_json({**told_by(monkeypatch), "gpu_memory": blocks})
    assert row["free"]["largest_bytes"] == 12 * MB
    assert row["free"]["by_size"][0] == {"from_bytes": MB, "count": 2, "bytes": 2 * MB}


@pytest.mark.parametrize("how", [{"is_used": False}, {"is_end": False}])
def test_a_gpu_is_not_begun_with_and_phases_do_not_ask(monkeypatch: pytest.MonkeyPatch, how: dict[str, bool]) -> None:
    assert segments.TOLD not in told_by(monkeypatch, **how)


def test_a_forked_child_asks_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert segments.TOLD in told_by(monkeypatch)
    monkeypatch.setattr(segments.os, "getpid", lambda: -1)
    assert segments.TOLD not in metadata.at_stop()
