"""What NCCL tells its profiler plug-in, of two ranks with a GPU each."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from bragg.analyze.ranks.summarize import summarize
from bragg.model import Profile
from bragg.model.meta.nccl import NcclCall, nccl_of
from tests.gpu.conftest import Recorded, kernel_nodes, names_above

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]

TORCHRUN = ("--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")


@pytest.fixture
def ranks(run: Run) -> Callable[..., list[Profile]]:
    """Profiles of the ranks of a program under `--nccl`."""
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")

    def profiles(program: str, *options: str, arguments: tuple[str, ...] = ()) -> list[Profile]:
        recorded = run(program, "--nccl", "--data", "trace", *options, arguments=arguments)
        return [profile for profile in recorded.profiles if profile.total("gpu_count")]

    return profiles


def calls_of(profile: Profile, operation: str) -> list[NcclCall]:
    told = nccl_of(profile.meta)
    assert told is not None
    return [call for call in told.calls if call.operation == operation]


def test_a_communicator_that_no_operator_names_has_groups_sizes_and_times(ranks: Callable[..., list[Profile]]) -> None:
    of_ranks = ranks("nccl_communicator.py", *TORCHRUN, arguments=("graph",))
    assert len(of_ranks) == 2
    groups = set()
    for profile in of_ranks:
        (sums,) = calls_of(profile, "all-reduce")
        assert (sums.calls, sums.timed, sums.size_bytes, sums.n_ranks) == (30, 30, 4 << 20, 2)  # 10 of them replayed
        assert sums.algorithm
        assert sums.protocol
        assert [(call.calls, call.timed) for call in calls_of(profile, "send")] == [(1, 1)]
        kernels = [node for node in kernel_nodes(profile) if "AllReduce" in profile.tree.label(int(node))]
        above = [name for node in kernels for name in names_above(profile, node) if name.startswith("collective ")]
        assert set(above) == {f"collective allreduce[1048576 f32, group {sums.group} of 2]"}
        # Channels begin after their kernel and end before it: 24 of them are 29.9 us of 33.1 us on an H100.
        gpu_ns = profile.own("gpu_time")[kernels].sum()
        assert 0.5 * gpu_ns < sums.gpu_ns <= gpu_ns
        groups.add((sums.group, tuple(summarize(profile).calls.group)))
    assert len(groups) == 1


def test_collectives_of_pytorch_keep_their_names_and_get_a_way(ranks: Callable[..., list[Profile]]) -> None:
    of_ranks = ranks("distributed.py", arguments=("nccl",))
    assert len(of_ranks) == 2
    for profile in of_ranks:
        calls = calls_of(profile, "all-reduce")
        assert {call.group for call in calls} == {"0"}
        told = {(call.group, call.operation, call.size_bytes): call.way for call in calls}
        summary = summarize(profile)
        known = zip(summary.calls.group, summary.calls.operation, summary.calls.size_bytes.tolist(), strict=True)
        sums = {key for key in known if key[1] == "all-reduce"}
        assert sums == told.keys()
        assert {key: summary.ways[key] for key in sums} == told
