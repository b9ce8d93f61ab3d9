"""Energy of kernels from samples of the GPU's power, which adds up to that of the GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.formats.captured.counted import with_counted
from bragg.formats.limits import Limits
from bragg.model import CounterTable, FrameKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.kernels.counters import power_rates
from bragg.model.meta.telemetry import POWER_TRACK
from tests.support.profiles import profile_from_text

SECOND_NS, SAMPLE_NS = 1_000_000_000, 100_000_000
POWER_W = {"matmul": 650.0, "copy": 420.0, "idle": 110.0}
# Phases of 0.7 to 1.6 s, so that samples have one kernel or two.
PHASES = [("matmul", 1.63), ("copy", 0.94), ("idle", 0.71)] * 6


def profile_with_power(noise_w: float = 4.0, late_ns: int = 0) -> tuple[Profile, float]:
    """A timeline of phases with samples of power, of which every second may be late, and the energy of all of it, J."""
    lengths = np.array([round(seconds * SECOND_NS) for _, seconds in PHASES])
    ends = np.cumsum(lengths)
    joules = np.append(0, np.cumsum(lengths / 1e9 * [POWER_W[name] for name, _ in PHASES]))
    at = np.arange(0, ends[-1], SAMPLE_NS)
    at[1::2] += late_ns
    power = np.diff(np.interp(at, np.append(0, ends), joules)) / (np.diff(at) / 1e9)
    power += noise_w * np.random.default_rng(5).standard_normal(len(power))
    profile = profile_from_text("root\n  matmul 1s\n  copy 1s\n  set 1s")
    names = [profile.tree.frames.name[frame] for frame in profile.tree.frame]
    works = [(name, end - length, length) for (name, _), end, length in zip(PHASES, ends, lengths, strict=True)]
    runs = [(start, length, names.index(name)) for name, start, length in works if name != "idle"]
    start, duration, node = (np.array(column, np.int64) for column in zip(*runs, strict=True))
    tracks = TrackTable(
        kind=np.array([TrackKind.GPU_STREAM, TrackKind.COUNTER], np.uint8),
        process=np.ones(2, np.int32),
        device=np.zeros(2, np.int32),
        context=np.zeros(2, np.int32),
        stream=np.zeros(2, np.uint32),
        name=["", POWER_TRACK],
        rank=np.full(2, -1, np.int32),
        host=[""] * 2,
    )
    slices = SliceTable(
        start, duration, node.astype(np.int32), np.zeros(len(runs), np.int32), np.zeros(len(runs), np.int64)
    )
    counters = CounterTable(at[1:], np.ones(len(power), np.int32), power)
    time_ns = np.bincount(node, duration, len(profile.tree)).astype(np.int64)
    gpu_time = replace(profile.metrics["gpu_time"], own=time_ns)
    frames, n_frames = profile.tree.frames, len(profile.tree.frames)
    kind = np.where(np.isin(frames.name, ["matmul", "copy", "set"]), FrameKind.KERNEL, frames.kind)
    frames = replace(frames, device=np.zeros(n_frames, np.int32), kind=kind)
    made = replace(
        profile,
        tree=replace(profile.tree, frames=frames),
        tracks=tracks,
        slices=slices,
        counters=counters,
        metrics={"gpu_time": gpu_time},
    )
    return made, float(joules[-1])


def test_energy_of_kernels_is_power_by_time_and_adds_up_with_idle_time() -> None:
    profile, joules = profile_with_power()
    counted = with_counted(profile, Limits(1 << 30))
    tree, energy, error = profile.tree, counted.own("gpu_energy"), counted.own("gpu_energy_error")
    assert counted.metrics["gpu_energy"].unit == "J"
    seconds = {name: 6 * length for name, length in PHASES[:3]}
    for name in ("matmul", "copy"):
        (node,) = (node for node in range(len(tree)) if tree.frames.name[tree.frame[node]] == name)
        known = POWER_W[name] * seconds[name]
        assert energy[node] == pytest.approx(known, rel=0.02)
        assert abs(energy[node] - known) <= error[node]
    (rates,) = power_rates(profile, profile.tree.frame)
    assert rates.idle_rate[0] == pytest.approx(POWER_W["idle"], rel=0.05)
    idle = rates.idle_rate[0] * seconds["idle"]
    assert energy.sum() + idle == pytest.approx(joules, rel=0.02)
    assert counted.own("energy_counted_time").sum() == profile.own("gpu_time").sum()


def test_a_sample_that_is_late_is_the_longer() -> None:
    profile, _ = profile_with_power(noise_w=0, late_ns=SAMPLE_NS // 8)
    (rates,) = power_rates(profile, profile.tree.frame)
    for frame, name in enumerate(profile.tree.frames.name):
        if name in POWER_W:
            assert rates.rate[0, frame] == pytest.approx(POWER_W[name], rel=1e-3)


def test_kernels_that_always_share_a_sample_have_no_energy() -> None:
    profile, _ = profile_with_power()
    step = np.arange(400) * 20_000_000
    slices = SliceTable(
        np.concatenate([step, step + 10_000_000]),
        np.full(800, 10_000_000, np.int64),
        np.repeat(np.array([1, 2], np.int32), 400),
        np.zeros(800, np.int32),
        np.zeros(800, np.int64),
    )
    counted = with_counted(replace(profile, slices=slices), Limits(1 << 30))
    assert counted.total("gpu_energy") == 0


def test_a_tiny_kernel_beside_each_launch_of_a_long_one_takes_no_energy_from_it() -> None:
    profile, joules = profile_with_power()
    tree, phases = profile.tree, profile.slices
    matmul, the_set = (
        next(node for node in range(len(tree)) if tree.label(node) == name) for name in ("matmul", "set")
    )
    launches = np.concatenate(
        [
            np.arange(start, start + length, 2_000_000)
            for start, length, node in zip(phases.start_ns, phases.duration_ns, phases.node, strict=True)
            if node == matmul
        ]
    )
    copies = phases.take(phases.node != matmul)
    n_launches, n_slices = len(launches), 2 * len(launches) + len(copies)
    slices = SliceTable(
        np.concatenate([copies.start_ns, launches, launches + 3000]),
        np.concatenate([copies.duration_ns, np.repeat([3000, 1_997_000], n_launches)]),
        np.concatenate([copies.node, np.repeat(np.array([the_set, matmul], np.int32), n_launches)]),
        np.zeros(n_slices, np.int32),
        np.zeros(n_slices, np.int64),
    )
    counted = with_counted(replace(profile, slices=slices), Limits(1 << 30))
    known = POWER_W["matmul"] * 6 * PHASES[0][1]
    assert counted.own("gpu_energy")[matmul] == pytest.approx(known, rel=0.02)
    assert counted.own("gpu_energy")[the_set] == 0
    assert joules > counted.total("gpu_energy") > 0.9 * (known + POWER_W["copy"] * 6 * PHASES[1][1])
