"""CUDA graphs, recorded through the fake driver and the fake CUPTI: kernels are found where they were captured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from bragg.model import Profile
from tests.support import fake_cuda
from tests.support.fake_gpu_runs import START, SUPPORT, Record, kernels, statistics

CAPTURE = """
stream = gpu.stream()
def captured(*names, scope=None):
    with bragg.scope(scope or "capture"), gpu.capture(stream) as graph:
        for name in names: gpu.launch(name, stream)
    return graph
def replay(executable, count=1, scope="replay"):
    with bragg.scope(scope): gpu.launch_graph(executable, stream, count)
    gpu.synchronize()
"""


@dataclass(frozen=True)
class Report:
    """What a program found in its own recording."""

    kernels: dict[str, int]
    statistics: dict[str, int]
    graphs: str


OwnRecordings = Callable[[str], tuple[list[Report], str]]


@pytest.fixture
def record_graphs(record: Record) -> Record:
    """`record`, for programs that capture and replay."""
    return partial(record, start=START + CAPTURE)


def values(profile: Profile, metric: str) -> dict[str, float]:
    """A metric's own values by path of names, below the root."""
    tree, own = profile.tree, profile.own(metric)
    nodes = np.flatnonzero(np.isfinite(own) & (own != 0))
    return {
        "/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]): float(own[node]) for node in nodes
    }


def test_kernels_of_a_graph_are_below_the_launch_and_where_they_were_captured(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with bragg.scope("model"), gpu.capture(stream) as graph:
            with bragg.scope("layer 0"):
                gpu.launch("matmul", stream)
                gpu.launch("relu", stream)
            with bragg.scope("layer 1"):
                gpu.launch("matmul", stream)
                gpu.copy(Copy.DEVICE_TO_DEVICE, 64, stream)
        replay(gpu.instantiate(graph), 5)
        """
    )
    assert kernels(run.main) == {
        "replay/<captured_at>/model/layer 0/matmul": 5,
        "replay/<captured_at>/model/layer 0/relu": 5,
        "replay/<captured_at>/model/layer 1/matmul": 5,
        "replay/<captured_at>/model/layer 1/copy DtoD": 5,
    }
    assert statistics(run)["launches"] == 5
    assert statistics(run)["unknown_captures"] == statistics(run)["unattributed_records"] == 0


@pytest.mark.parametrize("version", ["12.4", "12.8", "13.0", "13.4"])
def test_every_release_tells_where_a_node_was_captured(record_graphs: Record, version: str) -> None:
    run = record_graphs('replay(gpu.instantiate(captured("a", "b")), 3)', CUPTI_VERSION=version)
    assert kernels(run.main) == {"replay/<captured_at>/capture/a": 3, "replay/<captured_at>/capture/b": 3}


def test_python_call_paths_of_capture_and_launch_are_joined(record_graphs: Record) -> None:
    run = record_graphs(
        """
        def model():
            gpu.launch("matmul", stream)
        def build():
            with gpu.capture(stream) as graph: model()
            return gpu.instantiate(graph)
        def serve(executable):
            for _ in range(4): gpu.launch_graph(executable, stream)
        serve(build())
        gpu.synchronize()
        """,
        context="python",
    )
    ((path, count),) = kernels(run.main).items()
    launch, capture = path.split("/<captured_at>/")
    assert count == 4
    assert re.search(r"<module>/serve/.*launch_graph", launch)
    assert re.search(r"<module>/build/model/.*launch.*/matmul$", capture)


def test_a_graph_that_is_launched_from_two_places_is_below_both(record_graphs: Record) -> None:
    run = record_graphs(
        """
        executable = gpu.instantiate(captured("k"))
        replay(executable, 2, scope="train")
        replay(executable, 3, scope="test")
        """
    )
    assert kernels(run.main) == {"train/<captured_at>/capture/k": 2, "test/<captured_at>/capture/k": 3}


def test_instantiations_and_clones_of_a_graph_are_alike_and_outlive_it(record_graphs: Record) -> None:
    run = record_graphs(
        """
        graph = captured("k")
        first, second, copy = gpu.instantiate(graph), gpu.instantiate(graph), gpu.clone(graph)
        gpu.destroy_graph(graph)
        third = gpu.instantiate(copy)
        gpu.destroy_graph(copy)
        for number, executable in enumerate([first, second, third]): replay(executable, 1 + number)
        """
    )
    assert kernels(run.main) == {"replay/<captured_at>/capture/k": 6}


def test_graphs_within_graphs_keep_their_own_paths(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with bragg.scope("inner"), gpu.capture(stream) as inner:
            gpu.launch("a", stream)
            gpu.copy(Copy.DEVICE_TO_DEVICE, 64, stream)
            gpu.launch("b", stream)
        middle = gpu.graph_of(inner)
        with gpu.capture(stream, into=middle):
            with bragg.scope("around"): gpu.launch("c", stream)
        with bragg.scope("alone"), gpu.capture(stream) as copy: gpu.copy(Copy.DEVICE_TO_DEVICE, 64, stream)
        outer = gpu.graph_of(middle, inner, gpu.graph_of(copy))
        replay(gpu.instantiate(outer))
        """
    )
    assert kernels(run.main) == {
        "replay/<captured_at>/alone/copy DtoD": 1,
        "replay/<captured_at>/inner/a": 2,
        "replay/<captured_at>/inner/copy DtoD": 2,
        "replay/<captured_at>/inner/b": 2,
        "replay/<captured_at>/around/c": 1,
    }


def test_an_update_changes_where_the_kernels_were_captured(record_graphs: Record) -> None:
    run = record_graphs(
        """
        executable = gpu.instantiate(captured("a", "b", scope="first"))
        replay(executable, 2)
        graph = captured("a", "c", scope="second")   # the driver does not tell of "a": it is the same kernel
        gpu.update(executable, graph)
        gpu.destroy_graph(graph)
        replay(executable, 3)
        """
    )
    assert kernels(run.main) == {
        "replay/<captured_at>/first/a": 2,
        "replay/<captured_at>/first/b": 2,
        "replay/<captured_at>/second/a": 3,
        "replay/<captured_at>/second/c": 3,
    }


def test_an_update_of_graphs_within_graphs_is_paired_or_labelled(record_graphs: Record) -> None:
    run = record_graphs(
        """
        def nested(scope, *names):
            return gpu.graph_of(captured("same", *names, scope=scope), captured("alike", scope=scope))
        executable = gpu.instantiate(nested("first", "a"))
        gpu.update(executable, nested("second", "b"))
        replay(executable)
        """
    )
    # Nothing tells which graph has taken the place of the one in which all is alike.
    assert kernels(run.main) == {
        "replay/<captured_at>/second/same": 1,
        "replay/<captured_at>/second/b": 1,
        "replay/<capture not known>/alike": 1,
    }
    assert statistics(run)["unknown_captures"] == 1


def test_an_update_that_fails_changes_nothing(record_graphs: Record) -> None:
    run = record_graphs(
        """
        executable = gpu.instantiate(captured("a"))
        try: gpu.update(executable, captured("a", "b", scope="other"))
        except Exception as error: assert error.result == 910
        replay(executable)
        """
    )
    assert kernels(run.main) == {"replay/<captured_at>/capture/a": 1}


def test_bodies_of_conditions_have_no_correlation_but_a_place(record_graphs: Record) -> None:
    run = record_graphs(
        """
        graph, body = gpu.conditional()
        with bragg.scope("body"), gpu.capture(stream, into=body): gpu.launch("k", stream)
        executable = gpu.instantiate(graph)
        with bragg.scope("step"):
            replay(executable, 2, scope="warm-up")
            replay(executable, 3)
        """
    )
    ((first, _), *others) = sorted(kernels(run.main).items())
    assert first == "step/<captured_at>/body/k" or others
    assert sum(kernels(run.main).values()) == 5
    assert all(path.startswith("step/") and path.endswith("<captured_at>/body/k") for path in kernels(run.main))


def test_a_failed_capture_leaves_nothing(record_graphs: Record) -> None:
    run = record_graphs(
        """
        metric = bragg.scope("m", metrics={"work": 7})
        try:
            with gpu.capture(stream):
                with metric: gpu.launch("k", stream)
                try: gpu.call("cuStreamSynchronize", stream)
                except Exception as error: assert error.result == 900
        except Exception as error: assert error.result == 901
        with metric: gpu.launch("k", stream)
        gpu.synchronize()
        """
    )
    assert kernels(run.main) == {"m/k": 1}
    assert values(run.main, "work") == {"m": 7}


def test_values_recorded_at_capture_count_once_a_replay(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with bragg.scope("model", metrics={"batches": 1}), gpu.capture(stream) as graph:
            with bragg.scope("layer", metrics={"flops": 100, "loss": 0.5}): gpu.launch("k", stream)
        executable, idle = gpu.instantiate(graph), gpu.instantiate(graph)
        replay(executable, 10)
        replay(executable, 5, scope="again")
        """
    )
    assert values(run.main, "flops") == {
        "replay/<captured_at>/model/layer": 1000,
        "again/<captured_at>/model/layer": 500,
    }
    assert values(run.main, "loss")["replay/<captured_at>/model/layer"] == 5
    assert values(run.main, "batches") == {"model": 1}


def test_values_of_a_launch_belong_to_its_kernel(record_graphs: Record) -> None:
    run = record_graphs(
        """
        from bragg import _core
        flops = _core.metric("flops", is_float=False)
        def matmul(on):
            function = gpu.function("matmul").value
            _core.expect_launch(function, "matmul<64>", [(flops, 128)])
            gpu.launch("matmul", on)
        with bragg.scope("capture"), gpu.capture(stream) as graph:
            matmul(stream)
            with bragg.scope("meanwhile"): matmul(gpu.stream())   # another stream: it runs
        replay(gpu.instantiate(graph), 6)
        """
    )
    assert kernels(run.main) == {
        "capture/meanwhile/matmul<64>": 1,
        "replay/<captured_at>/capture/matmul<64>": 6,
    }
    assert values(run.main, "flops") == {
        "capture/meanwhile/matmul<64>": 128,
        "replay/<captured_at>/capture/matmul<64>": 6 * 128,
    }


def test_values_of_an_updated_graph_are_those_of_the_update(record_graphs: Record) -> None:
    run = record_graphs(
        """
        def step(amount):
            with bragg.scope("step"), gpu.capture(stream) as graph:
                with bragg.scope("work", metrics={"amount": amount}): gpu.launch("k", stream)
            return graph
        executable = gpu.instantiate(step(1))
        replay(executable, 3)
        gpu.update(executable, step(100))
        replay(executable, 2)
        """
    )
    assert values(run.main, "amount") == {"replay/<captured_at>/step/work": 203}


def test_values_of_graphs_within_graphs_count_for_each(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with gpu.capture(stream) as inner:
            with bragg.scope("inner", metrics={"work": 5}): gpu.launch("k", stream)
        replay(gpu.instantiate(gpu.graph_of(inner, inner)), 2)
        """
    )
    assert values(run.main, "work") == {"replay/<captured_at>/inner": 20}


def test_a_property_is_the_last_value(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with gpu.capture(stream) as graph:
            with bragg.scope("model", metrics={"batch (pty)": 32}): gpu.launch("k", stream)
        replay(gpu.instantiate(graph), 9)
        """
    )
    assert values(run.main, "batch") == {"replay/<captured_at>/model": 32}


def test_values_in_gpu_memory_are_below_the_launch_that_reads_them(record_graphs: Record) -> None:
    run = record_graphs(
        """
        import ctypes
        from bragg import _core
        loss, memory = _core.metric("loss"), ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(8))
        ctypes.c_double.from_address(memory.value).value = 2.5
        with bragg.scope("model"), gpu.capture(stream) as graph:
            gpu.launch("k", stream)
            _core.add_device_value(loss, memory.value, "f64", 0, 1, stream.value)
        replay(gpu.instantiate(graph), 4)
        """
    )
    assert values(run.main, "loss") == {"replay/<captured_at>/model": 10}


LATE = """
def report(path):
    import json
    profile = bragg.load(path)
    tree, counts = profile.tree, profile.own("gpu_count")
    print(json.dumps({
        "kernels": {"/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]): int(counts[node])
                    for node in range(len(counts)) if counts[node]},
        "statistics": profile.meta["statistics"],
        "graphs": profile.meta["cuda"]["graphs"],
    }))
def record(name, **options):
    return bragg.start(name, context="shadow", backend="cuda", **options)
def finish(session):
    session.stop()
    report(session.path)
"""


@pytest.fixture
def own_recordings(tmp_path: Path, fakes_directory: Path) -> OwnRecordings:
    """Runs a program that records itself: what it reported, and its stderr."""

    def run(body: str) -> tuple[list[Report], str]:
        script = tmp_path / "program.py"
        script.write_text(START + CAPTURE + LATE + dedent(body))
        environ = {**os.environ, **fake_cuda.environment(fakes_directory), "PYTHONPATH": str(SUPPORT)}
        done = subprocess.run(
            [sys.executable, str(script)],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [Report(**json.loads(line)) for line in done.stdout.splitlines()], done.stderr

    return run


def test_a_graph_captured_before_recording_is_labelled_and_told_once(own_recordings: OwnRecordings) -> None:
    (late,), talk = own_recordings(
        """
        first, second = gpu.instantiate(captured("a")), gpu.instantiate(captured("b"))
        session = record("late.bragg")
        replay(first, 5)
        replay(second, 5, scope="other")
        replay(gpu.instantiate(captured("c")))
        finish(session)
        """
    )
    assert late.kernels == {
        "replay/<captured before recording>/a": 5,
        "other/<captured before recording>/b": 5,
        "replay/<captured_at>/capture/c": 1,
    }
    assert late.statistics["unknown_captures"] == 10
    assert talk.count("captured before recording") == 1


def test_a_graph_captured_before_and_instantiated_after_is_labelled(own_recordings: OwnRecordings) -> None:
    (late,), _ = own_recordings(
        """
        graph = captured("a")
        session = record("late.bragg")
        replay(gpu.instantiate(gpu.graph_of(graph)), 2)
        finish(session)
        """
    )
    assert late.kernels == {"replay/<captured before recording>/a": 2}


def test_graphs_captured_while_nothing_records_are_known(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        session = record("paused.bragg")
        session.deactivate()
        executable = gpu.instantiate(captured("k"))
        replay(executable, 3)
        session.activate()
        replay(executable, 2)
        finish(session)
        """
    )
    assert report.kernels == {"replay/<captured_at>/capture/k": 2}
    assert "captured before" not in talk


def test_whole_graphs_give_way_to_nodes_when_another_session_wants_them(own_recordings: OwnRecordings) -> None:
    (nodes, whole), talk = own_recordings(
        """
        whole = record("whole.bragg", graphs="graph")
        executable = gpu.instantiate(captured("k"))
        replay(executable, 2, scope="whole")
        nodes = record("nodes.bragg")
        replay(executable, 3)
        finish(nodes)
        replay(executable, 1, scope="after")
        finish(whole)
        """
    )
    assert nodes.kernels == {"replay/<captured_at>/capture/k": 3}
    assert {re.sub(r"\d+", "ID", path): count for path, count in whole.kernels.items()} == {
        "whole/<cuda graph ID>": 2,
        "replay/<captured_at>/capture/k": 3,
        "after/<captured_at>/capture/k": 1,
    }
    assert talk.count("another session wants the nodes") == 1


def test_whole_graphs_are_not_recorded_where_cupti_would_crash(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        old = gpu.instantiate(captured("old"))
        session = record("whole.bragg", graphs="graph")
        new = gpu.instantiate(captured("new"))
        replay(new, 2)
        session.deactivate()
        replay(old)
        session.activate()
        replay(old, 3)
        replay(new, 4)
        finish(session)
        """
    )
    assert {re.sub(r"\d+", "ID", path): count for path, count in report.kernels.items()} == {
        "replay/<cuda graph ID>": 2,
        "replay/<captured before recording>/old": 3,
        "replay/<captured_at>/capture/new": 4,
    }
    assert report.graphs == "node"
    assert talk.count("one was instantiated before recording") == 1


def test_a_million_replays_need_no_more_memory(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        import sys
        gpu.set_knob("call_ns", 10_000)
        def rss_kb():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        session = record("million.bragg")
        def capture():
            with bragg.scope("model", metrics={"work": 1}): return captured("a")
        executable = gpu.instantiate(capture())
        sizes_kb = []
        for number in range(230):
            replay(executable, 10_000)
            if number % 2:
                gpu.update(executable, capture())
            else:
                gpu.destroy_executable(executable)
                executable = gpu.instantiate(capture())
            sizes_kb.append(rss_kb())
        # What is kept of the last launches has its full size, which varies, after 1.3 million.
        print(max(sizes_kb[130:]) - max(sizes_kb[:130]), file=sys.stderr)
        finish(session)
        """
    )
    assert report.kernels == {"replay/<captured_at>/model/capture/a": 2_300_000}
    assert int(talk.splitlines()[0]) < 16_000  # 16 B a replay


def test_whole_graphs_are_one_kernel_a_launch(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with bragg.scope("capture"), gpu.capture(stream) as graph:
            with bragg.scope("layer", metrics={"flops": 10}):
                for _ in range(100): gpu.launch("k", stream)
        replay(gpu.instantiate(graph), 7)
        with bragg.scope("eager"): gpu.launch("k", stream)
        """,
        graphs="graph",
    )
    ((path, count), eager) = sorted(kernels(run.main).items(), reverse=True)
    assert re.fullmatch(r"replay/<cuda graph \d+>", path)
    assert (count, eager) == (7, ("eager/k", 1))
    assert values(run.main, "flops") == {"replay/<captured_at>/capture/layer": 70}
    assert run.main.meta["cuda"]["graphs"] == "graph"
    assert (statistics(run)["graphs"], statistics(run)["kernels"]) == (7, 1)
