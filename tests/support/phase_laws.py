"""Laws of phases on the fake GPU; a program of its own, since the fakes must be there when a process starts.

Two sessions record the same random program side by side, one of them in phases: their sums must agree.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

from fake_cuda import Copy, FakeCuda
from hypothesis import given, settings
from hypothesis import strategies as st

import bragg
from bragg._core import add_value, enter_scope, exit_scope, metric
from bragg.model import Profile

NAMES = st.sampled_from(["a", "b", "c"])
STEP = st.one_of(
    st.tuples(st.just("enter"), NAMES),
    st.tuples(st.just("exit")),
    st.tuples(st.just("launch"), NAMES, st.integers(1, 30)),
    st.tuples(st.just("copy"), st.integers(1, 9)),
    st.tuples(st.just("graph")),
    st.tuples(st.just("value"), st.integers(-5, 5)),
    st.tuples(st.just("advance")),
    st.tuples(st.just("wait")),
    st.tuples(st.just("pause")),
)
SUMMED = ("gpu_count", "gpu_time", "gpu_bytes", "host_count", "value")

gpu = FakeCuda()
stream = gpu.stream()
value = metric("value", is_float=False)
with gpu.capture(stream) as graph:
    for kernel in ("a", "b"):
        gpu.launch(kernel, stream)
executable = gpu.instantiate(graph)


def sums(profile: Profile) -> Counter[tuple[str, ...]]:
    """Own values by metric and call path."""
    tree, found = profile.tree, Counter[tuple[str, ...]]()
    for name in set(SUMMED) & set(profile.metrics):
        for node, own in enumerate(profile.own(name)):
            if own:
                found[(name, *map(tree.label, tree.path(node)))] += int(own)
    return found


def do(step: tuple[str, ...], phases: bragg.Session, whole: bragg.Session, depth: int) -> int:
    """Do one step of a program; returns the number of open scopes."""
    match step:
        case ("enter", name):
            enter_scope(name)
            return depth + 1
        case ("exit",) if depth > 0:
            exit_scope()
            return depth - 1
        case ("launch", kernel, count):
            gpu.launch_many(kernel, count, stream)
        case ("copy", size):
            gpu.copy(Copy.HOST_TO_DEVICE, size, stream)
        case ("graph",):
            gpu.launch_graph(executable, stream)
        case ("value", number):
            add_value(value, number)
        case ("advance",):
            phases.advance_phase()
        case ("wait",):
            gpu.synchronize()
        case ("pause",):
            for change in ("deactivate", "activate") if phases.active else ("activate", "deactivate"):
                for session in (phases, whole):
                    getattr(session, change)()
                gpu.launch("c", stream)
    return depth


@settings(max_examples=60, deadline=None, derandomize=bool(os.environ.get("CI")))
@given(st.lists(STEP, max_size=60))
def test_phases_add_up_to_the_whole(steps: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        phases, whole = (
            bragg.start(str(Path(directory) / name), backend="cuda", context="shadow", sample_interval_us=0)
            for name in ("phases", "whole")
        )
        depth = 0
        with bragg.scope("program"):
            gpu.launch("a")
            for step in steps:
                depth = do(step, phases, whole, depth)
            for _ in range(depth):
                exit_scope()
        phases.advance_phase()
        phases.deactivate()  # completes what is over
        each = Counter[tuple[str, ...]]()
        for phase in phases.phases[:-1]:
            assert phases.is_phase_complete(phase)
            try:
                profile = phases.phase_profile(phase)
            except bragg.errors.NothingRecorded:
                continue
            profile.check()
            each.update(sums(profile))
        one = whole.stop(save=False)
        united = phases.stop(save=False)
    assert each == sums(one)
    assert sums(united) == sums(one)
    assert united.inclusive("host_time")[0] <= one.inclusive("host_time")[0]


test_phases_add_up_to_the_whole()
