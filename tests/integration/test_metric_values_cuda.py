"""Metric values in GPU memory, from the program to the profile, on the fake driver."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from bragg.model import Profile
from tests.support.fake_gpu_runs import START, Record, values

ARRAY = """
import ctypes
class Array:
    "Numbers on the fake GPU."
    def __init__(self, numbers, typestr="<f4", shape=None, strides=None, stream=None):
        kind = {"<f4": ctypes.c_float, "<f8": ctypes.c_double, "<i8": ctypes.c_int64}[typestr]
        address = ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(kind) * len(numbers)))
        self.memory = (kind * len(numbers)).from_address(address.value)
        self.memory[:] = numbers
        self.__cuda_array_interface__ = {
            "data": (address.value, False), "typestr": typestr, "version": 3, "strides": strides,
            "shape": () if shape is None else shape, "stream": stream,
        }
"""


@pytest.fixture
def record_arrays(record: Record) -> Callable[[str], Profile]:
    """Runs a program with `gpu`, a fake device, and `Array` under `bragg run`."""

    def run(body: str) -> Profile:
        done = record(body, START + ARRAY)
        assert done.exit_code == 0, done.talk
        return done.main

    return run


def test_values_on_the_gpu_are_added_where_they_were_given(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        loss, tokens = Array([0.5]), Array([3, 4], "<i8", shape=(2,))
        for name in ("train", "train", "test"):
            with bragg.scope(name, {"loss": loss, "tokens": tokens}):
                gpu.launch("k")
            loss.memory[0] *= 2
    """)
    assert values(profile, "loss") == {"train": 1.5, "test": 2.0}
    assert values(profile, "tokens[1]") == {"train": 8, "test": 4}
    assert values(profile, "gpu_count") == {"train/k": 2, "test/k": 1}


def test_property_on_the_gpu_is_its_last_value(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        rate = Array([0.5])
        for value in (1, 2, 0.25):
            rate.memory[0] = value
            with bragg.scope("step", {"rate (1/s)(pty)": rate}):
                pass
    """)
    assert values(profile, "rate") == {"step": 0.25}
    assert profile.metrics["rate"].unit == "1/s"


def test_every_second_number_of_an_array_is_read(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        with bragg.scope("a", {"v": Array([1, 2, 3, 4], "<f8", shape=(2,), strides=(16,))}):
            pass
    """)
    assert [values(profile, f"v[{i}]") for i in range(2)] == [{"a": 1.0}, {"a": 3.0}]


def test_kernels_that_read_values_are_counted_apart(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        loss = Array([0.5])
        for _ in range(3):
            gpu.launch("k")
            with bragg.scope("a", {"loss": loss}):
                pass
    """)
    statistics = profile.meta["statistics"]
    assert statistics["kernels"] == statistics["launches"] == statistics["metric_kernels"] == 3
    assert statistics["metric_kernels_ns"] > 0
    assert "bragg_read_values" not in json.dumps(profile.tree.frames.name)


def test_many_values_are_all_counted(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        ones = Array([1] * 4096, "<i8", shape=(4096,))
        for _ in range(100):
            with bragg.scope("a", {"ones": ones}):
                pass
    """)
    assert [values(profile, f"ones[{i}]") for i in (0, 4095)] == [{"a": 100}, {"a": 100}]


def test_value_in_a_graph_is_of_each_launch(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        stream = gpu.stream()
        loss, counts = Array([0], stream=stream.value), Array([1, 2], "<i8", shape=(2,), stream=stream.value)
        metrics = {"loss": loss, "last (pty)": loss, "counts": counts}
        with gpu.capture(stream) as graph, bragg.scope("captured", metrics):
            gpu.launch("k", stream)
        executable = gpu.instantiate(graph)
        for place, values in (("first", (1, 10, 100)), ("second", (1000,)), ("first", (0.5,))):
            with bragg.scope(place):
                for loss.memory[0] in values:
                    gpu.launch_graph(executable, stream)
    """)
    first, second = "first/<captured_at>/captured", "second/<captured_at>/captured"
    assert values(profile, "loss") == {first: 111.5, second: 1000}
    assert values(profile, "last") == {first: 0.5, second: 1000}
    assert values(profile, "counts[1]") == {first: 8, second: 2}
    assert values(profile, "gpu_count") == {f"{first}/k": 4, f"{second}/k": 1}


def test_replays_faster_than_values_are_collected_keep_exact_sums(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        stream = gpu.stream()
        ones = Array([1] * 4096, "<i8", shape=(4096,), stream=stream.value)
        with gpu.capture(stream) as graph:
            for _ in range(20):
                with bragg.scope("captured", {"ones": ones}):
                    pass
        executable = gpu.instantiate(graph)
        for place in ("first", "second"):
            with bragg.scope(place):
                for _ in range(30):
                    gpu.launch_graph(executable, stream)
    """)
    for element in (0, 4095):
        assert values(profile, f"ones[{element}]") == {
            "first/<captured_at>/captured": 600,
            "second/<captured_at>/captured": 600,
        }


def test_graph_that_is_launched_while_nothing_records_adds_nothing(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        stream = gpu.stream()
        loss = Array([1], stream=stream.value)
        with gpu.capture(stream) as graph, bragg.scope("captured", {"loss": loss}):
            pass
        executable = gpu.instantiate(graph)
        for _ in range(3):
            with bragg.scope("on"):
                gpu.launch_graph(executable, stream)
            bragg.deactivate()
            gpu.launch_graph(executable, stream)
            bragg.activate()
    """)
    assert values(profile, "loss") == {"on/<captured_at>/captured": 3}


def test_value_that_cannot_be_read_is_the_programs_error(record_arrays: Callable[[str], Profile]) -> None:
    profile = record_arrays("""
        from bragg.errors import UsageError
        array = Array([0.5])
        array.__cuda_array_interface__["data"] = (4096, False)
        try:
            bragg.scope("a", {"loss": array}).__enter__()
        except UsageError as error:
            assert str(error) == "metric 'loss': the address of the metric value is not memory of a GPU", error
        else:
            raise AssertionError
        with bragg.scope("b"):
            gpu.launch("k")
    """)
    assert values(profile, "gpu_count") == {"b/k": 1}
