"""Operators of PyTorch on a GPU: whose kernels are whose, and for how long."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

from bragg.model import FrameKind, Profile
from tests.gpu.conftest import Recorded, kernel_nodes, names_above

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]
Python = Callable[..., list[str]]

OPTIONS = ("--framework", "torch", "--context", "shadow")


def launched_by_operators(profile: Profile) -> dict[str, tuple[int, int]]:
    """Of each operator the kernels, copies and sets that it launched itself, and their time in ns."""
    tree = profile.tree
    counts, times = profile.own("gpu_count"), profile.own("gpu_time")
    launched: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for node in np.flatnonzero(counts):
        operators = [above for above in tree.path(int(node)) if tree.kind[above] == FrameKind.OPERATOR]
        if operators:
            count, time_ns = launched[tree.label(operators[-1])]
            launched[tree.label(operators[-1])] = count + int(counts[node]), time_ns + int(times[node])
    return launched


def test_gpu_time_of_each_operator_agrees_with_torch_profiler(run: Run, python: Python) -> None:
    ours = launched_by_operators(run("operators.py", *OPTIONS).profile)
    theirs = json.loads(python("operators.py", "torch")[-1])
    assert {name: count for name, (count, _) in ours.items()} == {name: count for name, (count, _) in theirs.items()}
    total_ns = sum(time_ns for _, time_ns in theirs.values())
    # Kernels of a microsecond are measured in steps of 32 ns, and their time differs from run to run.
    large = {name: time_ns for name, (_, time_ns) in theirs.items() if time_ns > 0.01 * total_ns}
    assert {"aten::addmm", "aten::mm", "aten::_fused_adamw_"} <= set(large)
    assert {name: ours[name][1] for name in large} == pytest.approx(large, rel=0.01)


def test_every_kernel_of_a_backward_pass_has_its_forward_operator_above(run: Run) -> None:
    profile = run("operators.py", *OPTIONS).profile
    assert profile.meta["torch_operators"] == "observers"
    paths = [names_above(profile, node) for node in kernel_nodes(profile)]
    matrix_products = [path for path in paths if "AddmmBackward0" in path]
    assert matrix_products
    for path in matrix_products:
        assert path[path.index("[backward]") - 2 : path.index("[backward]")] == ["aten::linear", "aten::addmm"]
    assert not any("[backward of an unknown operator]" in path for path in paths)


def test_kernels_that_inductor_made_stand_below_their_compiled_region_forward_and_backward(run: Run) -> None:
    profile = run("compiled.py", *OPTIONS).profile
    paths = [names_above(profile, node) for node in kernel_nodes(profile)]
    generated = [path for path in paths if path[-1].startswith("triton_")]
    assert generated
    for path in generated:
        assert any(name.startswith("Torch-Compiled Region: loss compiled.py:") for name in path)
    assert {"[backward]" in path for path in generated} == {False, True}
    assert any(" after a graph break " in name for path in generated for name in path)


def test_each_rank_of_a_distributed_training_has_its_own_forward_and_backward(run: Run) -> None:
    """Two layers and five steps a rank: one product of matrices forward each; backward two, and one where no input
    needs a gradient."""
    of_ranks = [profile for profile in run("distributed.py", *OPTIONS).profiles if profile.total("gpu_count")]
    assert len(of_ranks) == 2
    for profile in of_ranks:
        counts = profile.own("gpu_count")
        products = {"forward": 0, "backward": 0}
        for node in kernel_nodes(profile):
            path = names_above(profile, node)
            assert "[backward of an unknown operator]" not in path
            if "aten::addmm" in path and ("[backward]" not in path or "aten::mm" in path):
                products["backward" if "[backward]" in path else "forward"] += int(counts[node])
        assert products["forward"] >= 10
        assert products["backward"] >= 15


def test_what_ranks_exchange_is_below_the_operator_that_asks_for_it(run: Run) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    of_ranks = [
        profile
        for profile in run("distributed.py", "--context", "shadow", arguments=["nccl"]).profiles
        if profile.total("gpu_count")
    ]
    devices = [
        {int(profile.tree.frames.device[profile.tree.frame[node]]) for node in kernel_nodes(profile)}
        for profile in of_ranks
    ]
    assert sorted(devices, key=min) == [{0}, {1}]
    for profile in of_ranks:
        exchanges = [node for node in kernel_nodes(profile) if "AllReduce" in profile.tree.label(int(node))]
        assert profile.own("gpu_count")[exchanges].sum() >= 5
        assert all("c10d::allreduce_" in names_above(profile, node) for node in exchanges)


def test_operators_of_a_program_that_imported_pytorch_before_are_recorded(python: Python) -> None:
    assert set(python("operators_late.py")) == {"aten::mm 3"}
