from __future__ import annotations

from collections.abc import Callable

import pytest

from bragg.analyze.idle import idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.model import FrameKind, Profile
from tests.gpu.conftest import Recorded, kernel_count, kernel_nodes, names_above

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]


def time_ns(profile: Profile, metric: str, scope: str) -> float:
    """Inclusive time of the scope of that name."""
    (node,) = (node for node in range(len(profile.tree)) if profile.tree.label(node) == scope)
    return float(profile.inclusive(metric)[node])


def calls(profile: Profile, scope: str) -> dict[str, int]:
    """How often each call was made somewhere below a scope."""
    tree, counts = profile.tree, profile.own("host_count")
    found: dict[str, int] = {}
    for node in range(len(tree)):
        if tree.kind[node] == FrameKind.GPU_API and scope in names_above(profile, node):
            found[tree.label(node)] = found.get(tree.label(node), 0) + int(counts[node])
    return found


def test_every_kernel_is_below_the_call_that_launched_it(run: Run) -> None:
    profile = run("waits.py", "--context", "shadow", "--gpu-api", "all").profile
    kinds = {int(profile.tree.kind[profile.tree.parent[node]]) for node in kernel_nodes(profile)}
    assert kinds == {FrameKind.GPU_API}
    assert profile.meta["statistics"]["unattributed_records"] == 0
    assert calls(profile, "wait").get("cudaDeviceSynchronize") == 1
    assert calls(profile, "memory").get("cudaMalloc", 0) >= 1
    assert not [name for name in calls(profile, "ahead") if "Get" in name or name.endswith(("_v2", "_ptsz"))]


def test_the_scope_that_waits_has_the_time_of_the_kernels_that_were_launched_ahead(run: Run) -> None:
    profile = run("waits.py", "--context", "shadow", "--gpu-api", "sync").profile
    ahead_ns = time_ns(profile, "gpu_time", "ahead")
    assert time_ns(profile, "sync_time", "ahead") < 0.1 * ahead_ns
    assert 0.5 * ahead_ns < time_ns(profile, "sync_time", "wait") <= time_ns(profile, "host_time", "wait")
    assert time_ns(profile, "sync_time", "numbers") > 0.3 * time_ns(profile, "gpu_time", "numbers")
    assert set(calls(profile, "numbers")) <= {"cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMemcpy"}


def test_an_asynchronous_copy_to_pageable_memory_waits(run: Run) -> None:
    profile = run("waits.py", "--context", "shadow", "--gpu-api", "sync").profile
    assert time_ns(profile, "sync_time", "pageable") > 0.5 * time_ns(profile, "gpu_time", "pageable")
    assert "cudaMemcpyAsync" in calls(profile, "pageable")


def test_pauses_of_the_gpu_are_at_the_paths_that_ran_meanwhile(run: Run) -> None:
    profile = run("waits.py", "--context", "shadow", "--gpu-api", "--data", "trace").profile
    (device,) = idle_times(profile)
    idle = with_idle_paths(profile)
    assert idle.total("gpu_idle_time") == device.idle_ns
    assert time_ns(idle, "gpu_idle_time", "warm") > 0.5 * device.idle_ns  # libraries are loaded there
    assert time_ns(idle, "gpu_idle_time", "wait") < 0.1 * time_ns(idle, "host_time", "wait")


def test_calls_change_neither_the_number_of_kernels_nor_their_scopes(run: Run) -> None:
    profiles = [run("waits.py", "--context", "shadow", "--force", *options).profile for options in ((), ("--gpu-api",))]
    for scope in ("ahead", "numbers"):
        counts = [kernel_count(profile, under=scope) for profile in profiles]
        assert counts[0] == counts[1] > 0


def test_calls_of_programs_of_the_driver_are_nodes(run: Run) -> None:
    profile = run("triton_loop.py", "--context", "shadow", "--gpu-api", "all").profile
    launches = calls(profile, "loop")
    assert launches.get("cuLaunchKernel", 0) + launches.get("cuLaunchKernelEx", 0) >= 200


def test_tally_prints_calls_work_and_traffic_and_keeps_no_timeline(run: Run) -> None:
    recorded = run("waits.py", "--tally")
    lines = recorded.stderr.splitlines()
    assert {"GPU API", "device", "memory traffic", "scopes"} <= set(lines), recorded.stderr
    assert any(line.endswith("  cudaLaunchKernel") for line in lines), recorded.stderr
    assert any(line.endswith("  cudaDeviceSynchronize") for line in lines), recorded.stderr
    assert not len(recorded.profile.slices)
