"""What is said of GPU memory over a run, in a line for each GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.model.meta.gpu_memory import (
    AT_PEAK,
    CUDA_AT_PEAK,
    PEAKS,
    DeviceMemory,
    FreeMemory,
    JaxArrays,
    free_memory_of,
    gpu_memory_of,
    jax_arrays_of,
    jax_memory_of,
)
from bragg.model.meta.run import Run
from bragg.views.text.units import bytes_text, count_text, share_text

_N_GPUS = 2


def memory_lines(meta: Mapping[str, Any]) -> list[str]:
    """`GPU memory: 142.9 MB at the peak, 152 MB reserved (6 % unused)`, for each of few GPUs."""
    devices = [device for _, device in _devices(meta, AT_PEAK) if device.allocations]
    lines = [f"GPU {device.ordinal} memory: {_device_text(device)}" for device in devices[:_N_GPUS]]
    if len(devices) > _N_GPUS:
        lines.append(f"memory of {count_text(len(devices) - _N_GPUS, 'more GPU')}: bragg info --json")
    kept = [free for each in Run(meta).recording_metas for free in free_memory_of(each) if free.pieces]
    lines += [f"GPU {free.ordinal} memory of the allocator at the end: {_free_text(free)}" for free in kept[:_N_GPUS]]
    beside = ", beside PyTorch's allocator" if devices else ""
    lines += [
        f"GPU {device.ordinal} memory from CUDA{beside}: "
        f"{bytes_text(device.peak_bytes)} at the peak, taken {device.allocations:,} times"
        for device in [device for _, device in _devices(meta, CUDA_AT_PEAK) if device.allocations][:_N_GPUS]
    ]
    by_jax = [told for each in Run(meta).recording_metas for told in jax_memory_of(each)]
    lines += [
        f"GPU {told.ordinal} memory of JAX: {bytes_text(told.peak_bytes)} at the peak of "
        f"{bytes_text(told.limit_bytes)} that it may take; {count_text(told.allocations, 'block')}"
        for told in by_jax[:_N_GPUS]
    ]
    lines += [
        f"arrays of JAX: {bytes_text(arrays.held_bytes)} by call path, from a snapshot with "
        f"{bytes_text(arrays.in_use_bytes)} in use ({bytes_text(arrays.peak_bytes)} at the peak)"
        for arrays in _jax_arrays(meta)
        if not arrays.reason
    ]
    return lines


def memory_json(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as JSON values; empty when memory was not followed."""
    return [
        {
            "rank": rank,
            "device": device.ordinal,
            "peak_bytes": device.peak_bytes,
            "peak_ns": device.peak_ns,
            "reserved_at_peak_bytes": device.reserved_at_peak_bytes,
            "most_reserved_bytes": device.most_reserved_bytes,
            "unused_share": device.unused_share,
            "allocations": device.allocations,
            "reservations": device.reservations,
            "unknown_bytes": device.unknown_bytes,
            "table": table,
            **({"free": _free_json(free[device.ordinal])} if device.ordinal in free and metric == AT_PEAK else {}),
        }
        for metric, table in PEAKS.items()
        for each in Run(meta).recording_metas
        for free in [{told.ordinal: told for told in free_memory_of(each)}]
        for rank, device in _devices_of(each, table)
    ]


def memory_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """One line for memory that was to be followed and was not."""
    for told in filter(None, map(gpu_memory_of, Run(meta).recording_metas)):
        if told.reason:
            yield f"memory of GPUs was not recorded: {told.reason}"
    for arrays in _jax_arrays(meta):
        if arrays.reason:
            yield f"arrays of JAX have no call paths: {arrays.reason}"


def _jax_arrays(meta: Mapping[str, Any]) -> list[JaxArrays]:
    return [told for each in Run(meta).recording_metas if (told := jax_arrays_of(each)) is not None]


def _devices(meta: Mapping[str, Any], metric: str) -> list[tuple[int | None, DeviceMemory]]:
    return [device for each in Run(meta).recording_metas for device in _devices_of(each, PEAKS[metric])]


def _devices_of(meta: Mapping[str, Any], table: str) -> list[tuple[int | None, DeviceMemory]]:
    told = gpu_memory_of(meta, table)
    return [(Run(meta).rank, device) for device in told.devices] if told else []


def _free_json(free: FreeMemory) -> dict[str, Any]:
    return {
        "segments": free.segments,
        "reserved_bytes": free.reserved_bytes,
        "free_bytes": free.free_bytes,
        "largest_bytes": free.largest_bytes,
        "by_size": [{"from_bytes": size, "count": count, "bytes": in_all} for size, count, in_all in free.by_size],
    }


def _free_text(free: FreeMemory) -> str:
    """`1.20 GB in 34 segments, 310 MB of it free in 120 pieces: the largest 64.0 MB, most in 12 of 33.6 to 67.1 MB`."""
    size, count, _ = max(free.by_size, key=lambda row: row[2])
    kept = f"{bytes_text(free.reserved_bytes)} in {count_text(free.segments, 'segment')}"
    pieces = f"{bytes_text(free.free_bytes)} of it free in {count_text(free.pieces, 'piece')}"
    most = f", most in {count:,} of {bytes_text(size)} to {bytes_text(2 * size)}" if len(free.by_size) > 1 else ""
    return f"{kept}, {pieces}: the largest {bytes_text(free.largest_bytes)}{most}"


def _device_text(device: DeviceMemory) -> str:
    reserved = f"{bytes_text(device.most_reserved_bytes)} reserved ({share_text(device.unused_share)} unused)"
    return f"{bytes_text(device.peak_bytes)} at the peak, {reserved}; more from CUDA {device.reservations:,} times"
