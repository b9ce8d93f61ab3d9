"""Memory of GPUs by call path, from the fake of PyTorch's allocator to metrics, META and tracks."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from bragg.model import Profile, TrackKind
from bragg.model.meta.gpu_memory import DeviceMemory, gpu_memory_of
from bragg.views.text.memory_facts import memory_lines
from tests.support.fake_gpu_runs import START, Record, Run, values

MB = 1 << 20
ALLOCATOR = """
import ctypes, os
allocator = ctypes.CDLL(os.environ["LD_PRELOAD"])
allocator.fake_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
allocator.fake_allocate.restype = ctypes.c_uint64
allocator.fake_free.argtypes = [ctypes.c_uint64, ctypes.c_int]
allocator.fake_free.restype = None
def allocate(name, size, device=0):
    with bragg.scope(name): return allocator.fake_allocate(size, device)
def free(block, device=0):
    with bragg.scope("free"): allocator.fake_free(block, device)
gpu.launch("first"); gpu.synchronize()
"""
USE = """
weights = allocate("weights", 1000)
for step in range(3):
    activations = [allocate(f"layer {i}", 1 << 20) for i in range(3)]
    for block in activations: free(block)
last = allocate("last", 700)
"""


@pytest.fixture(params=["libc10_cuda.so", "libc10_hip.so"])
def followed(
    record: Record, fakes_directory: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Record:
    """`record`, for programs whose allocator is loaded when they begin: bound lazily, or in a read-only table."""
    monkeypatch.setenv("LD_PRELOAD", str(fakes_directory / "torch" / request.param))

    def run(body: str, *flags: str, **options: object) -> Run:
        return record(body, START + ALLOCATOR, *flags, **options)

    return run


def memory_of(profile: Profile) -> list[DeviceMemory]:
    told = gpu_memory_of(profile.meta)
    assert told is not None
    assert told.reason == ""
    return list(told.devices)


def test_the_peak_is_told_by_call_path_and_adds_up(followed: Record) -> None:
    profile = followed(USE, "--memory").main
    (memory,) = memory_of(profile)
    peak = {"weights": 1024, "layer 0": MB, "layer 1": MB, "layer 2": MB}
    assert values(profile, "gpu_memory_peak") == peak
    assert memory.peak_bytes == profile.total("gpu_memory_peak") == 3 * MB + 1024
    assert values(profile, "gpu_memory_end") == {"weights": 1024, "last": 1024}
    assert memory.most_reserved_bytes == profile.total("gpu_memory_reserved") == 4 * MB
    assert values(profile, "gpu_memory_reservations") == {"weights": 1, "layer 1": 1}
    assert (memory.allocations, memory.reservations, memory.unknown_bytes) == (11, 2, 0)
    assert memory.curve.most_bytes.max() == memory.peak_bytes
    assert memory_lines(profile.meta) == [
        "GPU 0 memory: 3.15 MB at the peak, 4.19 MB reserved (25.0 % unused); more from CUDA 2 times"
    ]


def test_the_timeline_has_a_curve_of_each_gpu(followed: Record) -> None:
    body = "a = allocate('a', 1 << 20)\nb = allocate('b', 5000, 1)\nfree(a)\n"
    profile = followed(body, "--memory", data="trace").main
    tracks, points = profile.tracks, profile.counters
    curves = {
        (tracks.label(row), int(tracks.device[row])): points.value[points.track == row].tolist()
        for row in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist()
    }
    assert curves["memory allocated (B)", 0][0] == MB
    assert curves["memory allocated (B)", 1] == [5120]
    assert curves["memory reserved (B)", 1] == [2 * MB]


def test_without_the_option_nothing_is_followed(followed: Record) -> None:
    profile = followed(USE).main
    assert "gpu_memory_peak" not in profile.metrics
    assert gpu_memory_of(profile.meta) is None


def test_a_phase_has_a_peak_of_its_own_and_phases_together_the_highest(followed: Record) -> None:
    body = """
    with bragg.profile("phases", backend="cuda", context="shadow", memory=True) as session:
        weights = allocate("weights", 1000)
        high = allocate("high", 1 << 20)
        free(high)
        session.advance_phase()
        low = allocate("low", 3000)
    profile = session.profile()
    print(profile.total("gpu_memory_peak"), profile.total("gpu_memory_end"))
    tree, held = profile.tree, profile.own("gpu_memory_end")
    print(*(f"{tree.label(node)}:{held[node]}" for node in held.nonzero()[0]))
    """
    run = followed(body)
    totals, holders = run.output.splitlines()
    assert totals.split() == [str(MB + 1024), str(1024 + 3072)]
    assert sorted(holders.split()) == ["low:3072", "weights:1024"]  # not: allocated before


def test_memory_of_before_the_recording_is_told_as_such(followed: Record) -> None:
    body = """
    before = allocator.fake_allocate(4096, 0)
    with bragg.profile("late", backend="cuda", context="shadow", memory=True) as session:
        block = allocate("block", 512)
    profile = session.profile()
    print(profile.total("gpu_memory_peak"), profile.meta["gpu_memory"]["devices"]["0"]["unknown_bytes"])
    """
    assert followed(body).output.split() == ["4608", "4096"]


def test_pytorch_has_the_function_that_is_replaced() -> None:
    torch = pytest.importorskip("torch")
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    assert library["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]


def test_a_killed_program_keeps_what_was_held(followed: Record) -> None:
    body = f"""
    import os, signal
    from flushed import wait_until_flushed
    a = allocate('a', {MB})
    wait_until_flushed("a", "gpu_memory_peak", {MB})
    os.kill(os.getpid(), signal.SIGKILL)
    """
    profile = followed(body, "--memory").main
    assert values(profile, "gpu_memory_peak") == {"a": MB}
