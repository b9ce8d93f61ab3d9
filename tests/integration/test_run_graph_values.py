"""Values that are recorded while a graph is captured: they count at each launch of it."""

from __future__ import annotations

from tests.support.fake_gpu_runs import Record, kernels, values


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


def test_values_of_a_launch_that_failed_do_not_count(record_graphs: Record) -> None:
    run = record_graphs(
        """
        with gpu.capture(stream) as graph:
            with bragg.scope("layer", metrics={"flops": 100}): gpu.launch("k", stream)
        executable = gpu.instantiate(graph)
        replay(executable, 3)
        gpu.fail("cuGraphLaunch", 719)
        try:
            replay(executable, 1)
        except Exception:
            pass
        gpu.fail("cuGraphLaunch", 0)
        replay(executable, 1)
        """
    )
    assert values(run.main, "flops") == {"replay/<captured_at>/layer": 400}


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
