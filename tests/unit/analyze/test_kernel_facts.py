from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.kernel_facts import kernel_facts
from bragg.model import Combine, KernelTable, Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text
from tests.support.work import H200

TEXT = "root\n  a\n    matmul<BM=64 w4 s3> 30us x3 @0\n  b\n    matmul<BM=64 w4 s3> 10us x1 @0\n    relu 5us x1 @0"


def with_metrics(profile: Profile, **own: list[float]) -> Profile:
    added = {name: Metric(name, "1", MetricKind.INCLUSIVE, np.array(values)) for name, values in own.items()}
    return replace(profile, metrics={**profile.metrics, **added}, meta={"devices": [H200]})


def test_kernels_are_added_up_over_call_paths() -> None:
    first, second = kernel_facts(profile_from_text(TEXT))
    assert (first.base, first.time_ns, first.count) == ("matmul", 40_000, 4)
    assert (second.base, second.time_ns, second.flops, second.bound) == ("relu", 5_000, None, None)


def test_values_that_are_no_finite_numbers_are_left_out() -> None:
    profile = profile_from_text(TEXT)
    odd = {"gpu_time": [0, 0, np.inf, 0, 10_000, np.nan], "gpu_count": [0, 0, np.nan, 0, np.inf, 1]}
    (matmul,) = kernel_facts(with_metrics(profile, **odd))
    assert (matmul.base, matmul.time_ns, matmul.count) == ("matmul", 10_000, 0)


def test_work_is_held_against_the_roof() -> None:
    profile = with_metrics(profile_from_text(TEXT), flops16=[0, 0, 6e9, 0, 2e9, 0], bytes=[0, 0, 3e6, 0, 1e6, 1e6])
    matmul, relu = kernel_facts(profile)
    assert (matmul.flops, matmul.bytes, matmul.bound) == (8e9, 4e6, "compute")
    assert matmul.roof_ns == pytest.approx(8e9 / 989.4e12 * 1e9, rel=0.1)
    assert (relu.flops, relu.bound) == (None, "memory")


def test_longest_launch_is_that_of_any_call_path() -> None:
    profile = profile_from_text(TEXT)
    longest = Metric("m", "ns", MetricKind.PROPERTY, np.array([np.nan, np.nan, 20, np.nan, 7, np.nan]), Combine.MAX)
    matmul, relu = kernel_facts(replace(profile, metrics={**profile.metrics, "gpu_time_max": longest}))
    assert (matmul.max_ns, relu.max_ns) == (20, None)


def test_configurations_are_ordered_by_launches() -> None:
    profile = profile_from_text(TEXT)
    frame = profile.tree.frames.name.index("relu")
    rows = {name: np.array([1, 1]) for name in KernelTable.columns()}
    rows |= {"frame": np.array([frame, frame]), "count": np.array([1, 5]), "block_x": np.array([64, 128])}
    rows |= {f"cluster_{axis}": np.array([0, 2]) for axis in "xyz"}
    _, relu = kernel_facts(replace(profile, kernels=KernelTable(**rows), meta={"devices": [H200]}))
    assert [(item.count, item.block, item.cluster) for item in relu.configurations] == [
        (5, (128, 1, 1), (2, 2, 2)),
        (1, (64, 1, 1), None),
    ]
    assert relu.configurations[0].shared_bytes == 2


def test_profile_without_gpu_time_has_no_kernels() -> None:
    assert kernel_facts(profile_from_text("root\n  a host=1us")) == []


def test_the_stack_of_a_kernel_is_what_its_binary_says() -> None:
    profile = profile_from_text(TEXT)
    frame = np.array([profile.tree.frames.name.index("relu")])
    rows = {name: np.ones(1, np.int64) for name in KernelTable.columns()}
    meta = {"attributes": {"relu": {"code": "relu/1a"}}, "kernel_options": {"relu/1a": {"stack_bytes": 512}}}
    _, relu = kernel_facts(replace(profile, kernels=KernelTable(**{**rows, "frame": frame}), meta=meta))
    assert relu.configurations[0].local_bytes_per_thread == 512
