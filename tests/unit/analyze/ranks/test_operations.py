from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.straggler_jobs import JobPlan, profiles_of
from bragg.analyze.ranks.answer import compare_ranks
from bragg.analyze.ranks.collectives import kernel_calls
from bragg.analyze.ranks.operations import Call, CollectiveKernel, call_of_frame, kernel_of_name
from bragg.analyze.ranks.summarize import summarize
from bragg.views.text.ranks_text import ranks_lines, transfer_lines
from bragg.views.text.style import PLAIN
from tests.support.profiles import profile_from_text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ("all-reduce", "f32")),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", ("reduce-scatter", "bf16")),
        ("ncclDevKernel_AllGather_RING_LL", ("all-gather", "")),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", ("send-receive", "")),
        ("ncclSymkDevKernel_AllReduce_AGxLL_R_f32", ("all-reduce", "f32")),
        ("rcclGenericKernel<1, false>", ("collective", "")),
    ],
)
def test_operations_of_kernels(name: str, told: tuple[str, str]) -> None:
    assert kernel_of_name(name) == CollectiveKernel(*told, is_library=True)


def test_kernels_of_compilers_are_told_from_others() -> None:
    xla = "void stream_executor::gpu::AllReduceKernelImpl<float, (xla::ReductionKind)0>"
    assert kernel_of_name(xla) == CollectiveKernel("all-reduce", "", is_library=False)
    assert kernel_of_name("void at::native::reduce_kernel<512, 1>") is None


def test_frames_of_calls_tell_group_and_bytes() -> None:
    assert call_of_frame("collective allreduce[1024 f16, group 0 of 8]") == Call("0", "all-reduce", "f16", 2048)
    named = "collective _reduce_scatter_base[7 elements, group mesh_tp_0 of 2]"
    assert call_of_frame(named) == Call("mesh_tp_0", "reduce-scatter", "elements", -1)
    assert call_of_frame("collective all-gather[8 u32 in groups of 4]") == Call("", "all-gather", "u32", 32)
    of_several_shapes = "collective all-reduce[group devices 0-3 of 4]"
    assert call_of_frame(of_several_shapes) == Call("devices 0-3", "all-reduce", "", -1)
    assert call_of_frame("aten::mm[2x2 f32]") is None


def test_collectives_of_jax_have_bytes_and_the_stream_for_a_group() -> None:
    profile = profile_from_text(
        """
root
  collective all-reduce[1024 f32 in groups of 2] #operator
    ncclDevKernel_AllReduce_Sum_f32_RING_LL 12us
"""
    )
    found = kernel_calls(profile, np.zeros(len(profile.tree), np.int64))
    assert (found.calls.operation, found.calls.dtype, found.calls.size_bytes.tolist()) == (
        ["all-reduce"],
        ["f32"],
        [4096],
    )
    assert found.has_group.tolist() == [False]


def test_bus_bandwidth_is_that_of_the_links() -> None:
    plan = JobPlan(n_ranks=4, n_steps=6, n_layers=1, noise=0.0, bucket_us=400.0)
    (found,) = compare_ranks([summarize(profile) for profile in profiles_of(plan)]).transfers
    assert (found.operation, found.n_ranks, found.size_bytes, found.count) == ("all-reduce", 4, 1_600_000, 6)
    assert found.bus_bytes_per_s == pytest.approx(1_600_000 * 1.5 / 400e-6, rel=0.001)
    assert found.way == ""


@pytest.mark.parametrize(
    ("device", "n_ranks", "told"),
    [
        ("NVIDIA H100 80GB HBM3", 8, "1.6 % of NVLink"),
        ("NVIDIA A100-SXM4-80GB", 8, "2.3 % of NVLink"),
        ("NVIDIA H100 PCIe", 8, ""),
        ("NVIDIA H100 80GB HBM3", 16, ""),  # on two hosts
    ],
)
def test_bandwidth_is_compared_with_the_link_of_one_host(device: str, n_ranks: int, told: str) -> None:
    plan = JobPlan(n_ranks=n_ranks, n_steps=6, n_layers=1, noise=0.0, bucket_us=400.0)
    ranks = [replace(summarize(profile), device=device) for profile in profiles_of(plan)]
    (line,) = transfer_lines(compare_ranks(ranks).transfers)
    assert line.partition("in all")[2].lstrip(", ") == told


def test_bandwidth_stands_beside_the_way_that_nccl_took() -> None:
    call = {"function": "AllReduce", "dtype": "f32", "count": 400_000, "algorithm": "NVLS", "protocol": "SIMPLE"}
    told = {"communicators": [{"torch_group": "0", "n_ranks": 2, "calls": [{**call, "calls": 6, "channels": 16}]}]}
    profiles = profiles_of(JobPlan(n_ranks=2, n_steps=6, n_layers=1, bucket_us=400.0))
    ranks = [summarize(replace(profile, meta={**profile.meta, "nccl": told})) for profile in profiles]
    answer = compare_ranks(ranks)
    assert [each.way for each in answer.transfers] == ["NVLS SIMPLE, 16 channels"]
    line = next(line for line in ranks_lines(answer, PLAIN) if "GB/s" in line)
    assert line.endswith("in all, NVLS SIMPLE, 16 channels")
