"""Memory that a program takes from CUDA itself, by call path, from the fake driver to metrics, META and tracks."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.model import Profile, TrackKind
from bragg.model.meta.gpu_memory import CUDA_AT_PEAK, PEAKS, DeviceMemory, gpu_memory_of
from bragg.views.text.memory_facts import memory_lines
from tests.support.fake_gpu_runs import START, Record, values

MB = 1 << 20
TAKE = """
import ctypes
def take(name, size, call="cuMemAlloc_v2", *stream):
    address = ctypes.c_uint64()
    with bragg.scope(name): gpu.call(call, ctypes.byref(address), ctypes.c_size_t(size), *stream)
    return address
def give_back(address, call="cuMemFree_v2", *stream):
    with bragg.scope("free"): gpu.call(call, address, *stream)
gpu.launch("first"); gpu.synchronize()
"""


@pytest.fixture
def followed(record: Record) -> Record:
    """`record`, for programs that take memory from the fake driver."""
    return lambda body, *flags, **options: record(body, START + TAKE, *flags, **options)


def memory_of(profile: Profile) -> list[DeviceMemory]:
    told = gpu_memory_of(profile.meta, PEAKS[CUDA_AT_PEAK])
    assert told is not None
    return list(told.devices)


def test_the_peak_is_told_by_call_path_and_adds_up(followed: Record) -> None:
    body = f"""
    weights = take("weights", {MB})
    for step in range(3):
        scratch = take("scratch", {2 * MB}, "cuMemAllocAsync", None)
        give_back(scratch, "cuMemFreeAsync", None)
    take("last", 512)
    gpu.synchronize()
    """
    profile = followed(body, "--memory").main
    (memory,) = memory_of(profile)
    assert values(profile, "cuda_memory_peak") == {"weights": MB, "scratch": 2 * MB}
    assert values(profile, "cuda_memory_end") == {"weights": MB, "last": 512}
    assert values(profile, "cuda_memory_taken") == {"weights": MB, "scratch": 6 * MB, "last": 512}
    assert values(profile, "cuda_memory_calls") == {"weights": 1, "scratch": 3, "last": 1}
    assert (memory.peak_bytes, memory.unknown_bytes) == (3 * MB, 0)
    assert memory_lines(profile.meta) == ["GPU 0 memory from CUDA: 3.15 MB at the peak, taken 5 times"]


MAPPED = """
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("handles", ctypes.c_uint32), ("location", ctypes.c_uint32 * 2),
                ("rest", ctypes.c_uint64 * 2)]
def create(name, size, location=(1, 0)):
    handle, properties = ctypes.c_uint64(), Properties(type=1, location=location)
    arguments = ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), ctypes.c_uint64()
    with bragg.scope(name): gpu.call("cuMemCreate", *arguments)
    return handle
def map_at(handle, size):
    address, zero = ctypes.c_uint64(), ctypes.c_uint64()
    gpu.call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), zero, zero, zero)
    gpu.call("cuMemMap", address, ctypes.c_size_t(size), zero, handle, zero)
    return address
def release(handle): gpu.call("cuMemRelease", handle)
def unmap(address, size): gpu.call("cuMemUnmap", address, ctypes.c_size_t(size))
"""


def test_mapped_and_managed_memory_counts_and_that_of_the_host_does_not(followed: Record) -> None:
    body = f"""
    {MAPPED.strip().replace(chr(10), chr(10) + "    ")}
    kept = create("kept", {2 * MB})
    address = map_at(kept, {2 * MB})
    release(kept)  # its address keeps it
    retained = ctypes.c_uint64()
    freed = create("freed", {MB})
    there = map_at(freed, {MB})
    gpu.call("cuMemRetainAllocationHandle", ctypes.byref(retained), there)
    release(retained); unmap(there, {MB}); release(freed)
    create("host", {MB}, (2, 0))
    managed = take("managed", {MB}, "cuMemAllocManaged", ctypes.c_uint(1))
    other = create("other GPU", {4 * MB}, (1, 1))
    """
    profile = followed(body, "--memory").main
    first, second = memory_of(profile)
    assert values(profile, "cuda_memory_taken") == {"kept": 2 * MB, "freed": MB, "managed": MB, "other GPU": 4 * MB}
    assert values(profile, "cuda_memory_end") == {"kept": 2 * MB, "managed": MB, "other GPU": 4 * MB}
    assert (first.peak_bytes, second.peak_bytes) == (3 * MB, 4 * MB)


def test_calls_that_fail_and_those_of_captures_take_nothing(followed: Record) -> None:
    body = f"""
    from fake_cuda import CudaError
    gpu.fail("cuMemAlloc_v2", 2)
    try: take("fails", {MB})
    except CudaError: print("failed")
    gpu.fail("cuMemAlloc_v2", 0)
    stream = gpu.stream()
    with gpu.capture(stream): take("captured", {MB}, "cuMemAllocAsync", stream)
    take("works", {MB})
    """
    run = followed(body, "--memory")
    assert run.exit_code == 0
    assert "failed" in run.output
    assert values(run.main, "cuda_memory_taken") == {"works": MB}


def test_the_timeline_has_a_curve_and_calls_of_the_api_are_followed_too(followed: Record) -> None:
    body = f"give_back(take('a', {MB}))"
    profile = followed(body, "--memory", "--gpu-api", data="trace").main
    tracks = profile.tracks
    labels = [tracks.label(row) for row in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist()]
    assert "memory taken from CUDA (B)" in labels
    assert values(profile, "host_count")["free/cuMemFree"] == 1


def test_without_the_option_nothing_is_followed(followed: Record) -> None:
    profile = followed(f"take('a', {MB})").main
    assert CUDA_AT_PEAK not in profile.metrics
    assert gpu_memory_of(profile.meta, PEAKS[CUDA_AT_PEAK]) is None


def test_a_phase_has_a_peak_of_its_own(followed: Record) -> None:
    body = f"""
    with bragg.profile("phases", backend="cuda", context="shadow", memory=True) as session:
        weights = take("weights", {MB})
        give_back(take("high", {4 * MB}))
        session.advance_phase()
        take("low", {MB})
    profile = session.profile()
    print(profile.total("cuda_memory_peak"), profile.total("cuda_memory_end"), profile.total("cuda_memory_taken"))
    """
    assert followed(body).output.split() == [str(5 * MB), str(2 * MB), str(6 * MB)]
