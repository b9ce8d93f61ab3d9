"""JAX's allocators are asked at the end, and only if the program has used devices."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.jax import memory
from bragg.record.inside import metadata
from bragg.views.text.memory_facts import memory_lines

STATS = {"peak_bytes_in_use": 3_000_000, "bytes_limit": 60_000_000_000, "num_allocs": 7, "pool_bytes": 9}


def told_by(monkeypatch: pytest.MonkeyPatch, *devices: object, is_used: bool = True) -> dict[str, Any]:
    jax: Any = ModuleType("jax")
    jax.local_devices = lambda: list(devices)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setattr(metadata, "_asked", {})
    bridge: Any = ModuleType("bridge")
    bridge.backends_are_initialized = lambda: is_used
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    memory.tell_memory(ModuleType("api"))
    return metadata.at_stop()


def device(ordinal: int, platform: str, stats: dict[str, int] | None) -> object:
    return SimpleNamespace(local_hardware_id=ordinal, platform=platform, memory_stats=lambda: stats)


def test_each_gpu_says_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = told_by(monkeypatch, device(0, "cpu", None), device(1, "gpu", STATS), device(2, "gpu", None))
    assert meta["jax_memory"] == {"1": {name: STATS[name] for name in STATS if name != "pool_bytes"}}
    assert memory_lines(meta) == ["GPU 1 memory of JAX: 3.00 MB at the peak of 60.0 GB that it may take; 7 blocks"]


def test_devices_are_not_begun_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "jax_memory" not in told_by(monkeypatch, device(0, "gpu", STATS), is_used=False)


def test_what_jax_has_forgotten_when_the_program_ends_is_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    ending: list[Any] = []
    monkeypatch.setattr(memory.atexit, "register", ending.append)
    assert "jax_memory" in told_by(monkeypatch, device(0, "gpu", STATS))
    monkeypatch.setattr(metadata, "_asked", {})
    memory.tell_memory(ModuleType("api"))
    ending[-1]()
    sys.modules["jax._src.xla_bridge"].backends_are_initialized = lambda: False  # type: ignore[attr-defined]
    assert metadata.at_stop()["jax_memory"]["0"]["num_allocs"] == 7


def test_a_forked_child_asks_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "jax_memory" in told_by(monkeypatch, device(0, "gpu", STATS))
    monkeypatch.setattr(memory.os, "getpid", lambda: -1)
    assert "jax_memory" not in metadata.at_stop()
