from __future__ import annotations

import importlib.util
import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bragg.model import FrameKind, TrackKind
from bragg.model.kernels.names import base_name
from tests.gpu.conftest import Recorded, kernel_count, kernel_nodes, names_above

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]
Python = Callable[..., list[str]]
TRAINING_SCOPES = {"setup", "forward", "backward", "update"}


def test_training_agrees_with_torch_profiler(run: Run, python: Python) -> None:
    def by_torch() -> list[int]:
        return [int(number) for number in python("training.py", "torch")[-1].split()]

    # Clocks of a GPU differ by some percent from one process to the next.
    before, profile, after = by_torch(), run("training.py", "--context", "shadow").profile, by_torch()
    assert kernel_count(profile) == before[0] == after[0]
    time_ns = profile.own("gpu_time")[kernel_nodes(profile)].sum()
    assert 0.98 * min(before[1], after[1]) <= time_ns <= 1.02 * max(before[1], after[1])


def test_every_kernel_of_training_is_in_the_scope_that_caused_it(run: Run) -> None:
    profile = run("training.py", "--context", "shadow").profile
    assert all(TRAINING_SCOPES & set(names_above(profile, node)) for node in kernel_nodes(profile))


def test_autograd_threads_inherit_the_scope_of_the_code_that_called_backward(run: Run) -> None:
    profile = run("training.py", "--context", "shadow", "--framework", "off").profile
    # Two linear layers: at least two matrix products a layer and step, less the gradient of the input.
    assert kernel_count(profile, under="backward") >= 10 * 3


def test_python_context_shows_the_call_path_of_a_kernel(run: Run) -> None:
    profile = run("training.py", "--context", "python").profile
    paths = [names_above(profile, node) for node in kernel_nodes(profile, under="forward")]
    assert paths
    assert all(path.index("main") < path.index("train_step") < path.index("forward") for path in paths)


def test_native_context_shows_the_functions_between_python_and_a_kernel(run: Run) -> None:
    profile = run("training.py", "--context", "native").profile
    assert profile.meta["statistics"]["cut_native_paths"] == 0
    frames = profile.tree.frames
    for node in kernel_nodes(profile, under="forward"):
        path = [int(profile.tree.frame[above]) for above in profile.tree.path(node)]
        innermost_python = max(depth for depth, row in enumerate(path) if frames.kind[row] == FrameKind.PYTHON)
        files = [frames.file[row] for row in path[innermost_python + 1 : -1]]
        assert any(file.startswith("libtorch") for file in files)
        assert not any(file.startswith(("libcuda.so", "libcupti.so", "python", "libpython")) for file in files)


def test_triton_launches_are_counted_exactly(run: Run) -> None:
    profile = run("triton_loop.py", "--context", "shadow").profile
    nodes = [node for node in kernel_nodes(profile, under="loop") if base_name(profile.tree.label(node)) == "increment"]
    assert profile.own("gpu_count")[nodes].sum() == 200


def test_graph_kernels_are_counted_under_the_scope_of_the_replay(run: Run) -> None:
    assert kernel_count(run("graph.py", "--context", "shadow").profile, under="replay") == 50 * 20


def test_every_stream_is_a_lane_of_its_own(run: Run) -> None:
    profile = run("streams.py", "--data", "trace").profile
    kernels = profile.tree.kind[profile.slices.node] == FrameKind.KERNEL
    lanes = profile.slices.track[kernels]
    assert {int(kind) for kind in profile.tracks.kind[lanes]} == {TrackKind.GPU_STREAM}
    sleeping = [int((lanes == lane).sum()) for lane in set(lanes)]
    assert sorted(sleeping)[-2:] == [40, 40]


def test_every_kernel_is_in_its_scope_whatever_gpu_stream_and_thread_it_ran_on(run: Run) -> None:
    profile = run("coded_durations.py", "--context", "shadow").profile
    nodes = [node for node in kernel_nodes(profile) if profile.tree.label(profile.tree.parent[node]).startswith("code")]
    scopes = [re.fullmatch(r"code (\d+) gpu (\d+)", profile.tree.label(profile.tree.parent[node])) for node in nodes]
    code, gpu = np.array([(int(scope[1]), int(scope[2])) for scope in scopes if scope]).T
    assert sorted(code) == list(range(len(nodes)))
    assert set(profile.own("gpu_count")[nodes]) == {50}
    assert (profile.tree.frames.device[profile.tree.frame[nodes]] == gpu).all()
    # A kernel in a wrong scope is 4.5 % too long or too short there, or more.
    cycles = 100_000 * 1.045**code
    rates = [profile.own(metric)[nodes] / cycles for metric in ("gpu_time_min", "gpu_time_max")]
    middle = np.median(np.concatenate(rates))
    assert np.abs(np.concatenate(rates) / middle - 1).max() < 0.03


def test_launches_point_to_their_kernels(run: Run) -> None:
    profile = run("streams.py", "--data", "trace").profile
    assert len(profile.flows) >= 80


def test_deactivated_session_records_nothing(python: Python) -> None:
    assert python("toggling.py") == ["20"]


def test_process_that_forks_before_cuda_gives_two_profiles(run: Run) -> None:
    profiles = run("forking.py", "--context", "shadow").profiles
    assert sorted(kernel_count(profile, "parent") + kernel_count(profile, "child") for profile in profiles) == [31, 31]


def test_taken_subscriber_slot_is_named(python: Python) -> None:
    assert "another tool holds the only CUPTI subscription" in "\n".join(python("slot_taken.py"))


def test_killed_process_loses_nothing_that_was_flushed(run: Run) -> None:
    assert kernel_count(run("killed.py", "--context", "shadow", expect=-signal.SIGKILL).profile, under="work") == 100


@pytest.mark.parametrize("package", ["triton/backends/nvidia/lib/cupti", "nvidia/cu13/lib"])
def test_each_release_of_cupti_gives_the_same_counts(run: Run, package: str) -> None:
    directory = cupti_directory(package)
    profile = run("driver_api.py", "--context", "shadow", BRAGG_CUPTI_DIR=str(directory)).profile
    assert kernel_count(profile, under="driver") == 25
    memory = profile.tree.kind == FrameKind.MEMORY
    assert profile.own("gpu_count")[memory].sum() == 15
    assert profile.own("gpu_bytes")[memory].sum() == 15 * 4096


def cupti_directory(package: str) -> Path:
    """Where an installed framework keeps its CUPTI; packages that are not installed skip the test."""
    spec = importlib.util.find_spec(package.split("/")[0])
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    for root in spec.submodule_search_locations:
        directory = Path(root).parent / package
        if directory.is_dir():
            return directory
    pytest.skip(f"{package} is not installed")
