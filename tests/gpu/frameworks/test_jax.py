"""JAX on a real GPU: kernels below the call, the scopes and the phase that they come from."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bragg.model import FrameKind, Profile
from tests.gpu.conftest import PROGRAMS, Recorded, kernel_count, kernel_nodes, names_above, record

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("jax"), "jax_paths.py", "--context", "python")


@pytest.fixture(scope="module")
def profile(recorded: Recorded) -> Profile:
    return recorded.profile


def paths(profile: Profile) -> dict[int, list[str]]:
    """Names above each kernel of the step that was run, below the call."""
    found = {}
    for node in kernel_nodes(profile, "jit(loss)"):
        names = names_above(profile, node)
        below = names[names.index("jit(loss)") + 1 :]
        if not any(name.startswith("[compile]") for name in below):
            found[int(node)] = below
    return found


def test_nothing_is_left_as_xla_wrote_it(profile: Profile) -> None:
    names = {profile.tree.label(node) for node in range(len(profile.tree))}
    assert not [name for name in names if name.startswith(("TSL: ", "jit(loss)/")) or "#" in name]
    assert "<captured_at>" not in names


def test_most_of_the_time_is_below_scopes_of_the_program(profile: Profile) -> None:
    scopes = {"block0", "block1", "repeated"}
    times = profile.own("gpu_time")
    found = paths(profile)
    total = sum(int(times[node]) for node in found)
    scoped = sum(int(times[node]) for node, names in found.items() if scopes & set(names))
    assert scoped / total > 0.7
    assert any("[backward]" in names for names in found.values())


def test_candidates_of_autotuning_are_below_the_compilation(profile: Profile) -> None:
    tree, times = profile.tree, profile.inclusive("gpu_time")
    tuned = [node for node in range(len(tree)) if tree.label(node) == "autotune"]
    outside = [node for node in kernel_nodes(profile) if "RedzoneAllocatorKernelImpl" in tree.label(int(node))]
    assert sum(int(times[node]) for node in tuned) > 0
    assert all("autotune" in names_above(profile, int(node)) for node in outside)


def test_operations_have_lines_of_the_program(profile: Profile) -> None:
    tree = profile.tree
    program = str(PROGRAMS / "jax_paths.py")
    lines = (PROGRAMS / "jax_paths.py").read_text().splitlines()
    operators = [frame for frame in np.unique(tree.frame) if tree.frames.kind[frame] == FrameKind.OPERATOR]
    places = {(tree.frames.name[frame], tree.frames.file[frame], int(tree.frames.line[frame])) for frame in operators}
    found = [line for name, file, line in places if file == program and name == "dot_general"]
    assert found
    assert all(" @ " in lines[line - 1] for line in found)


def test_steps_are_calls(profile: Profile) -> None:
    tree, counts = profile.tree, profile.own("host_count")
    assert sum(int(counts[node]) for node in range(len(tree)) if tree.label(node) == "jit(loss)") == 10


def test_what_runs_behind_jax_s_profiler_is_recorded(run: Callable[..., Recorded]) -> None:
    recorded = run("jax_profiled.py", "--context", "shadow")
    assert "share one CUPTI" in recorded.stderr
    assert kernel_count(recorded.profile, "jit(before)") == kernel_count(recorded.profile, "jit(after)") == 10


def test_arrays_near_the_peak_are_at_the_functions_that_made_them(tmp_path: Path) -> None:
    recorded = record(tmp_path, "jax_memory.py", "--memory")
    told, profile = json.loads(recorded.stdout.splitlines()[-1]), recorded.profile
    tree, held = profile.tree, profile.own("gpu_memory_peak")
    by_function: Counter[str] = Counter()
    for node in held.nonzero()[0].tolist():
        names = [tree.frames.name[tree.frame[step]] for step in tree.path(node)]
        assert names[1] == "[arrays of JAX]"
        by_function[next((name for name in reversed(names) if name in ("weights", "batch", "<module>")), "?")] += int(
            held[node]
        )
    print(told, by_function, profile.meta["jax_arrays"], profile.meta["jax_memory"])
    assert by_function["batch"] == 128 << 20
    assert by_function["weights"] + by_function["<module>"] >= 256 << 20
    assert profile.meta["jax_arrays"]["held_bytes"] == held.sum() <= told["peak"]
    assert profile.meta["jax_memory"]["0"]["peak_bytes_in_use"] == told["peak"]
