"""JAX's allocators are asked at the end, and its arrays at the peak, and only if the program has used devices."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.jax import memory
from bragg.record.inside import metadata
from bragg.views.text.memory_facts import memory_lines

STATS = {"peak_bytes_in_use": 3_000_000, "bytes_limit": 60_000_000_000, "num_allocs": 7, "pool_bytes": 9}


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What the thread would run."""
    begun: list[Callable[[], object]] = []

    def begin(run: Callable[[], object], _name: str) -> object:
        begun.append(run)
        return SimpleNamespace(join=lambda _seconds: None)

    monkeypatch.setattr(memory, "begin_own_thread", begin)
    return begun


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


class Program:
    """A program of JAX on one GPU, on a clock of its own; looking takes 10 us, a snapshot 3 ms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.cpu_s, self.look_s = 100.0, 0.0, 10e-6
        self.in_use = self.taken = 0
        gpu = SimpleNamespace(local_hardware_id=0, platform="gpu", memory_stats=self._stats)
        jax: Any = ModuleType("jax")
        jax.local_devices = lambda: [gpu]
        jax.profiler = SimpleNamespace(device_memory_profile=self._profile)
        monkeypatch.setitem(sys.modules, "jax", jax)
        bridge: Any = ModuleType("bridge")
        bridge.backends_are_initialized = lambda: True
        monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
        clocks = SimpleNamespace(monotonic=lambda: self.now_s, thread_time=lambda: self.cpu_s)
        monkeypatch.setattr(memory, "time", clocks)
        self.snapshots = memory.Snapshots()

    def _stats(self) -> dict[str, int]:
        self.cpu_s += self.look_s
        return {"bytes_in_use": self.in_use}

    def _profile(self, platform: str) -> bytes:
        assert platform == "gpu"
        self.now_s += 0.003
        self.taken += 1
        return str(self.in_use).encode()

    def uses(self, n_bytes: int, seconds: float = 1.0) -> float | None:
        self.in_use = n_bytes
        self.now_s += seconds
        return self.snapshots.look()

    def held(self) -> bytes:
        return b64decode(self.snapshots.told()["pprof"])


def test_the_snapshot_is_that_with_most_memory_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    assert program.snapshots.told() == {}
    for n_bytes in (1_000, 4_000, 2_000, 4_100, 4_300, 100):
        program.uses(n_bytes)
    assert program.held() == b"4300"  # 4,100 is not 5 % more than 4,000
    assert program.taken == 3
    assert program.snapshots.told()["in_use_bytes"] == 4_300
    assert program.snapshots.told()["took_ns"] == 9_000_000


def test_snapshots_take_a_hundredth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    for step in range(1, 1001):
        program.uses(1_000 * 2**step, seconds=0.02)
    assert 0.9 < (program.taken * 0.003 - 0.02) / (1000 * 0.02 * 0.01) <= 1.2


@pytest.mark.parametrize(("look_s", "pause_s"), [(10e-6, 0.02), (100e-6, 0.1), (2.0, 1.0)])
def test_looks_take_a_thousandth_of_a_core(monkeypatch: pytest.MonkeyPatch, look_s: float, pause_s: float) -> None:
    program = Program(monkeypatch)
    program.look_s = look_s
    assert program.uses(0) == pytest.approx(pause_s)


def test_no_look_follows_where_no_gpu_tells(monkeypatch: pytest.MonkeyPatch, looks: list[Callable[[], object]]) -> None:
    assert "jax_arrays" not in told_by(monkeypatch, device(0, "cpu", None))
    looks[-1]()  # returns


def test_a_snapshot_that_is_too_large_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    monkeypatch.setattr(memory, "_MOST_BYTES", 2)
    program.uses(5_000_000)
    assert program.snapshots.told()["reason"] == "the snapshot takes 0 MB"
    assert "pprof" not in program.snapshots.told()
