"""CUDA graphs, recorded through the fake driver and the fake CUPTI: kernels are found where they were captured."""

from __future__ import annotations

import re

import pytest

from tests.support.fake_gpu_runs import Record, kernels, statistics, values


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
