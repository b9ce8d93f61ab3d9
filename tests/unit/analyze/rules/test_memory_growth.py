"""Memory that each step leaves allocated, from the curve in META."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze import steady_memory as module
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.analyze.steady_memory import steady_memory
from bragg.analyze.wall.wall_time import Steady
from bragg.model import Finding, Profile
from tests.support.profiles import profile_from_text

BIN_NS, N_BINS, N_STEPS = 1 << 20, 100, 50
STEADY = Steady(begins_ns=20 * BIN_NS, ends_ns=N_BINS * BIN_NS, n_steps=N_STEPS)


def profile_with(least: list[int], reserved: list[int] | None = None) -> Profile:
    curve = {
        "start_ns": 0,
        "bin_ns": BIN_NS,
        "least_bytes": least,
        "most_bytes": least,
        "reserved_bytes": reserved or [2_000_000] * len(least),
    }
    device = {"peak_bytes": 1_000_000, "allocations": 9, "curve": curve}
    profile = profile_from_text("root\n  matmul 12us")
    return replace(profile, meta={**profile.meta, "gpu_memory": {"devices": {"0": device}}})


def found_in(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    monkeypatch.setattr(Evidence, "steady", STEADY)
    return analysis(Evidence(profile), ["memory-grows"]).findings


def test_a_leak_is_found_with_its_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = found_in(profile_with([100_000 + 5_000 * bin for bin in range(N_BINS)]), monkeypatch)
    assert finding.message == "memory of GPU 0 grows by 0.008 MB a step"  # 80 bins of 5 kB in 50 steps
    assert "gpu_memory_end" in finding.hint


@pytest.mark.parametrize(
    "least",
    [
        [100_000] * N_BINS,
        [100_000 if bin % 2 else 500_000 for bin in range(N_BINS)],
        [100_000 + bin for bin in range(N_BINS)],  # 80 B in all
        [5_000 * bin for bin in range(20)] + [100_000] * 80,  # while it starts
        list(range(900_000, 0, -9_000)),
    ],
)
def test_memory_that_does_not_grow_is_silent(least: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_in(profile_with(least), monkeypatch) == []


def test_a_gpu_that_nothing_is_allocated_on_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_with([0] * N_BINS)
    profile.meta["gpu_memory"]["devices"]["0"]["peak_bytes"] = 0
    assert found_in(profile, monkeypatch) == []


def test_memory_that_is_taken_from_cuda_in_the_steady_state_is_summed_up() -> None:
    reserved = [1_000 * (1 + bin // 10) for bin in range(N_BINS)]
    (told,) = steady_memory(profile_with([5] * N_BINS, reserved), STEADY)
    assert told.reserved_bytes == 7_000
    assert told.growth_bytes == 0
    (few,) = steady_memory(profile_with([5] * N_BINS), replace(STEADY, n_steps=module._LEAST_STEPS - 1))
    assert few.growth_bytes is None
    assert steady_memory(profile_with([5] * N_BINS), None) == []
