"""Calls and compilations of jitted functions, with real JAX on the CPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import bragg
from bragg.grouping.regions import group_by_region
from bragg.model import FrameKind, Profile
from tests.support.runs import Recorder, entered

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")

PROGRAM = """
    import jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def inner(x):
        return jnp.tanh(x)

    def loss(w, x):
        with jax.named_scope("layer"):
            return inner(w @ x).sum()

    @jax.profiler.annotate_function
    def marked():
        pass

    marked()
    marked()
    step = jax.jit(jax.value_and_grad(loss))
    for number, size in enumerate((2, 2, 2, 3, 3)):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(np.ones((size, size), np.float32), np.ones((size, 4), np.float32))
    x = np.ones((2, 4), np.float32)
    ahead = jax.jit(lambda w: jnp.multiply(w, 2)).lower(x).compile()
    for _ in range(4):
        ahead(x)

    def mapped(x):
        return x * 2

    pmapped = jax.pmap(mapped)
    for _ in range(3):
        pmapped(x[:1])

    @jax.jit
    def square(x):
        return (x**2).sum()

    for _ in range(2):
        jax.grad(square)(x)

    def host(x):
        return x + 1

    @jax.jit
    def calling(x):
        return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    for _ in range(2):
        jax.block_until_ready(calling(x))
    for _ in range(7):
        jnp.add(x, x)
    try:
        step(1, 2, 3)
    except TypeError:
        pass
    else:
        raise SystemExit("it has two arguments")
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    run = Recorder(tmp_path_factory.mktemp("jax")).program(PROGRAM, context="shadow", sample_interval_us=0)
    assert run.result.exit_code == 0
    return run.main


def test_each_call_is_entered_and_compilations_are_below_it(profile: Profile) -> None:
    assert entered(profile, "jit(loss)") == 6
    tree = profile.tree
    paths = {tuple(tree.label(step) for step in tree.path(node)[1:]) for node in range(len(tree))}
    assert ("train", "jit(loss)", "[compile] jit_loss") in paths
    assert entered(profile, "[compile] jit_loss") == 2


def test_steps_are_calls_of_the_function_that_takes_most_time(profile: Profile) -> None:
    counts = {name: times["count"] for name, times in profile.meta["regions"].items()}
    assert counts["step of jit(loss)"] == 6
    assert entered(profile, "jit(add)") >= 7
    assert "step of jit(add)" not in counts
    assert group_by_region(profile).own("region_calls")[0] in counts.values()


def test_allocators_are_asked_before_jax_forgets_its_devices(tmp_path: Path) -> None:
    program = """
        import types, jax
        jax.numpy.ones(3).block_until_ready()
        stats = {"peak_bytes_in_use": 5, "num_allocs": 2}
        gpu = types.SimpleNamespace(platform="gpu", local_hardware_id=0, memory_stats=lambda: stats)
        jax.local_devices = lambda: [gpu]
    """
    profile = Recorder(tmp_path).program(program, memory=True).main
    assert profile.meta["jax_memory"] == {"0": {"peak_bytes_in_use": 5, "num_allocs": 2}}


def test_annotations_for_jax_s_profiler_are_scopes(profile: Profile) -> None:
    assert entered(profile, "train") == 5
    assert entered(profile, "marked") == 2
    scopes = {
        name
        for kind, name in zip(profile.tree.frames.kind, profile.tree.frames.name, strict=True)
        if kind == FrameKind.SCOPE
    }
    assert {name for name in scopes if not name.startswith("[")} == {"train", "marked"}


def test_what_is_compiled_ahead_of_time_mapped_or_transposed_is_called_too(profile: Profile) -> None:
    assert entered(profile, "jit(<lambda>)") == 4
    assert entered(profile, "pmap(mapped)") == 3
    assert entered(profile, "jit(square)") == 2 * 2  # forward and backward
    tree = profile.tree
    compilations = [node for node in range(len(tree)) if tree.label(node) == "[compile] jit_square"]
    assert {tree.label(tree.parent[node]) for node in compilations} == {"jit(square)"}


def test_functions_that_jitted_functions_call_are_a_part_of_them(profile: Profile) -> None:
    assert entered(profile, "jit(inner)") == 0
    assert entered(profile, "[trace] jit(<lambda>)") == 1
    assert entered(profile, "jit(multiply)") == 0


def test_functions_of_the_program_that_are_called_back_are_scopes(profile: Profile) -> None:
    assert entered(profile, "[callback] host") == entered(profile, "jit(calling)") == 2


def test_calls_are_operators_whose_time_has_that_of_compiling(profile: Profile) -> None:
    tree = profile.tree
    below = next(node for node in range(len(tree)) if tree.label(node) == "[compile] jit_loss")
    node = tree.parent[below]
    assert tree.kind[node] == FrameKind.OPERATOR
    host_time = profile.inclusive("host_time")
    assert host_time[node] > host_time[below] > 1_000_000


def test_functions_that_exist_before_recording_begins_are_followed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    program = f"""
        import jax, numpy as np
        step = jax.jit(lambda x: x + 1)
        step(np.ones(2))
        early = jax.profiler.TraceAnnotation("early")
        import bragg
        session = bragg.start({str(tmp_path / "late.bragg")!r}, context="shadow", backend="cpu")
        with early, jax.profiler.TraceAnnotation("late"):
            for _ in range(3):
                step(np.ones(2))
            bragg.stop(session)
        with jax.profiler.TraceAnnotation("after"):
            step(np.ones(2))
    """
    subprocess.run([sys.executable, recorder.script(program)], check=True)
    recorded = bragg.load(tmp_path / "late.bragg")
    assert entered(recorded, "jit(<lambda>)") == 3
    assert {"early", "after"}.isdisjoint(recorded.tree.frames.name)


def test_arrays_near_the_peak_are_at_the_lines_that_made_them(tmp_path: Path) -> None:
    program = """
        import time
        import jax, jax.numpy as jnp

        class Gpu:  # JAX on a CPU does not say how much memory is in use
            platform, local_hardware_id = "gpu", 0
            def memory_stats(self):
                in_use = sum(array.nbytes for array in list(held))
                return {"bytes_in_use": in_use, "peak_bytes_in_use": in_use, "bytes_limit": 1 << 33, "num_allocs": 2}

        held, taken, of_cpu = [], [], jax.profiler.device_memory_profile
        jax.local_devices = lambda: [Gpu()]
        jax.profiler.device_memory_profile = lambda platform: taken.append(len(held)) or of_cpu()

        def weights():
            return jax.block_until_ready(jnp.ones((1000, 1000)))

        def batch():
            return jax.block_until_ready(jnp.ones((500, 1000)))

        held.extend([weights(), batch()])
        end = time.monotonic() + 30
        while 2 not in taken and time.monotonic() < end:
            time.sleep(0.01)
    """
    recorded = Recorder(tmp_path).program(program, memory=True).main
    tree, held = recorded.tree, recorded.own("gpu_memory_peak")
    paths = {tuple(tree.label(step) for step in tree.path(node)[1:]): int(held[node]) for node in held.nonzero()[0]}
    assert {path[0] for path in paths} == {"[arrays of JAX]"}
    by_function = {path[-1].split("@")[-1]: held_bytes for path, held_bytes in paths.items() if held_bytes > 1000}
    assert by_function == {"weights": 4_000_000, "batch": 2_000_000}
    assert recorded.meta["jax_arrays"]["held_bytes"] == held.sum()
