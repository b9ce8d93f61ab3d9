"""What META tells of GPU memory, and of phases together."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.model.meta.gpu_memory import gpu_memory_of, united_memory
from bragg.views.text.memory_facts import memory_json, memory_lines, memory_warnings


def device(**facts: Any) -> dict[str, Any]:
    known = {
        "peak_bytes": 300,
        "peak_ns": 7,
        "reserved_at_peak_bytes": 350,
        "most_reserved_bytes": 400,
        "allocations": 5,
        "frees": 4,
        "reservations": 2,
        "unknown_bytes": 0,
        "curve": {
            "start_ns": 1,
            "bin_ns": 2,
            "least_bytes": [0, 1],
            "most_bytes": [300, 3],
            "reserved_bytes": [400, 4],
        },
    }
    return {**known, **facts}


def meta(**devices: Any) -> dict[str, Any]:
    return {"gpu_memory": {"devices": {name.removeprefix("gpu"): facts for name, facts in devices.items()}}}


def test_each_gpu_has_a_line() -> None:
    assert memory_lines(meta(gpu0=device(), gpu1=device(peak_bytes=400))) == [
        "GPU 0 memory: 300 B at the peak, 400 B reserved (25.0 % unused); more from CUDA 2 times",
        "GPU 1 memory: 400 B at the peak, 400 B reserved (0.0 % unused); more from CUDA 2 times",
    ]
    (row,) = memory_json(meta(gpu0=device()))
    assert row["unused_share"] == 0.25
    assert memory_lines({}) == []
    assert memory_lines(meta(gpu0=device(allocations=0))) == []


def test_memory_from_cuda_is_beside_the_allocator_where_there_is_one() -> None:
    cuda = {"cuda_memory": meta(gpu0=device())["gpu_memory"]}
    told = "300 B at the peak, taken 5 times"
    assert memory_lines(cuda) == [f"GPU 0 memory from CUDA: {told}"]
    assert memory_lines({**cuda, **meta(gpu0=device(allocations=0))}) == [f"GPU 0 memory from CUDA: {told}"]
    both = memory_lines({**cuda, **meta(gpu0=device())})
    assert both[1:] == [f"GPU 0 memory from CUDA, beside PyTorch's allocator: {told}"]


@pytest.mark.parametrize("curve", [None, {"least_bytes": ["x"]}, {"least_bytes": [-1]}, {"bin_ns": 0}, []])
def test_a_damaged_curve_is_an_empty_one(curve: object) -> None:
    told = gpu_memory_of(meta(gpu0=device(curve=curve), other=device(), gpux=3))
    assert told is not None
    assert [len(each.curve.least_bytes) for each in told.devices] == [0]


def test_a_reason_is_a_warning() -> None:
    told = {"gpu_memory": {"reason": "libc10_cuda.so does not tell its blocks"}}
    assert list(memory_warnings(told)) == ["memory of GPUs was not recorded: libc10_cuda.so does not tell its blocks"]


def test_of_two_phases_the_higher_peak_counts_and_counts_add_up() -> None:
    later = device(peak_bytes=100, peak_ns=9, most_reserved_bytes=500, unknown_bytes=3)
    together = united_memory(meta(gpu0=device())["gpu_memory"], meta(gpu0=later, gpu1=device())["gpu_memory"])
    told = gpu_memory_of({"gpu_memory": together})
    assert told is not None
    first, second = told.devices
    assert (first.peak_bytes, first.peak_ns, first.most_reserved_bytes) == (300, 7, 500)
    assert (first.allocations, first.reservations, first.unknown_bytes) == (10, 4, 3)
    assert second.peak_bytes == 300
