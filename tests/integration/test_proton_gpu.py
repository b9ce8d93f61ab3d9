"""Kernels in bragg.proton, through the fake driver and the fake CUPTI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import fake_cuda
from tests.support.proton_runs import GPU, ProtonRun, outline, run_program

Run = Callable[..., ProtonRun]


@pytest.fixture
def run(tmp_path: Path, fakes_directory: Path) -> Run:
    """Runs a program with `gpu`, a fake device, and `proton`; keyword arguments are settings of the fakes."""

    def run(body: str, start: str = GPU, **settings: object) -> ProtonRun:
        return run_program(tmp_path, start + body, environ=fake_cuda.environment(fakes_directory, settings))

    return run


def test_kernels_are_below_the_scopes_that_launched_them(run: Run) -> None:
    done = run("""
session = proton.start("x")
gpu.set_kernel_ns("add", 5000)
with proton.scope("test0"):
    with proton.scope("test1"): gpu.launch("add")
    gpu.launch("add"); gpu.launch("mul")
with proton.scope("test2"): gpu.launch("add")
proton.finalize()
""")
    assert (done.exit_code, done.errors) == (0, "")
    assert outline(done.tree()) == [
        "ROOT count=0",
        "  test0",
        "    test1",
        "      add count=1",
        "    add count=1",
        "    mul count=1",
        "  test2",
        "    add count=1",
    ]
    leaf = done.tree()["children"][0]["children"][0]["children"][0]
    assert leaf["metrics"] == {"count": 1, "device_id": "0", "device_type": "CUDA", "time (ns)": 5000}
    assert done.tree()["metrics"] == {"count": 0, "time (ns)": 0}


def test_copies_are_left_out(run: Run) -> None:
    done = run("""
from fake_cuda import Copy
proton.start("x")
with proton.scope("a"):
    gpu.copy(Copy.HOST_TO_DEVICE, 1000); gpu.set_memory(8); gpu.launch("k")
proton.finalize()
""")
    assert outline(done.tree()) == ["ROOT count=0", "  a", "    k count=1"]


def test_python_context_has_the_program_s_lines_and_none_of_bragg_s(run: Run) -> None:
    done = run("""
def work():
    proton.enter_scope("scope")
    gpu.launch("k")
    proton.exit_scope()
proton.start("x", context="python")
work()
proton.finalize()
""")
    lines = [line.strip().rpartition("/")[2].partition(" ")[0] for line in outline(done.tree())]
    assert [line for line in lines if "fake_cuda" not in line] == [
        "ROOT",
        "program.py:11@<module>",
        "program.py:7@work",
        "scope",
        "program.py:8@work",
        "k",
    ]


def test_session_counts_only_what_was_launched_while_it_was_active(run: Run) -> None:
    done = run("""
a, b = proton.start("a"), proton.start("b")
with proton.scope("both"): gpu.launch("k")
proton.deactivate(a)
proton.finalize(a)
with proton.scope("second"): gpu.launch("k")
proton.deactivate(b)
gpu.launch("k")
proton.activate(b)
gpu.launch("k")
proton.finalize(b)
""")
    assert outline(done.tree("a.hatchet")) == ["ROOT count=0", "  both", "    k count=1"]
    expected = ["ROOT count=0", "  both", "    k count=1", "  second", "    k count=1", "  k count=1"]
    assert outline(done.tree("b.hatchet")) == expected


def test_two_devices_have_nodes_and_facts_of_their_own(run: Run) -> None:
    done = run(
        """
proton.start("x")
with proton.scope("a"):
    gpu.launch("k"); gpu.use_device(1); gpu.launch("k"); gpu.launch("k")
proton.finalize()
""",
        DEVICES=2,
    )
    kernels = done.tree()["children"][0]["children"]
    assert [(node["metrics"]["device_id"], node["metrics"]["count"]) for node in kernels] == [("0", 1), ("1", 2)]
    devices = json.loads((done.directory / "x.hatchet").read_text())[1]
    assert set(devices["CUDA"]) == {"0", "1"}
    assert set(devices["CUDA"]["0"]) == {"arch", "bus_width", "clock_rate", "memory_clock_rate", "num_sms"}


def test_data_of_a_running_session_is_complete_after_a_flush(run: Run) -> None:
    done = run("""
import json
session = proton.start("x")
with proton.scope("a"): gpu.launch_many("k", 500)
proton.deactivate(session, flushing=True)
print(json.dumps(proton.data.get(session)))
proton.finalize()
""")
    assert outline(json.loads(done.output)[0]) == ["ROOT count=0", "  a", "    k count=500"]


def test_kernels_belong_to_the_phase_that_they_were_launched_in(run: Run) -> None:
    done = run("""
session = proton.start("x", mode="periodic_flushing")
for phase in range(3):
    with proton.scope(f"in {phase}", {"n": 1}): gpu.launch_many("k", 10 + phase)
    if phase < 2: proton.data.advance_phase(session)
proton.finalize()
""")
    assert done.files() == {f"x.part_{phase}.hatchet" for phase in range(3)}
    for phase in range(3):
        expected = ["ROOT count=0 n=0", f"  in {phase} n=1", f"    k count={10 + phase}"]
        assert outline(done.tree(f"x.part_{phase}.hatchet")) == expected


CAPTURE = """
stream = gpu.stream()
with gpu.capture(stream) as graph:
    with proton.scope("captured"): gpu.launch("k", stream)
executable = gpu.instantiate(graph)
"""


def test_kernels_of_a_graph_have_the_path_of_its_capture_and_of_its_launch(run: Run) -> None:
    done = run(f"""
proton.start("x")
{CAPTURE}
with proton.scope("replay"): gpu.launch_graph(executable, stream)
proton.finalize()
""")
    assert done.exit_code == 0, done.errors
    lines = outline(done.tree())
    assert lines[lines.index("  replay") :] == ["  replay", "    <captured_at>", "      captured", "        k count=1"]


def test_graph_that_was_captured_before_the_session_is_told_once(run: Run) -> None:
    done = run(f"""
{CAPTURE}
proton.start("x")
for name in ("first", "second"):
    with proton.scope(name): gpu.launch_graph(executable, stream)
proton.finalize()
""")
    assert outline(done.tree()) == ["ROOT count=0", "  first", "    k count=1", "  second", "    k count=1"]
    assert done.errors.count("Cannot find graph for graphExecId:") == 1
    assert "start profiling before the graph is created" in done.errors


def events(done: ProtonRun, **wanted: object) -> list[dict[str, Any]]:
    document = json.loads((done.directory / "x.chrome_trace").read_text())
    assert document["displayTimeUnit"] == "us"
    return [event for event in document["traceEvents"] if wanted.items() <= event.items()]


TRACE = """
from bragg.proton.output import trace_file
trace_file.TRACE_OF_KERNELS_ALONE = {only_kernels}
proton.start("x", data="trace")
gpu.set_kernel_ns("k", 5000)
with proton.scope("a"): gpu.launch("k", gpu.stream())
with proton.scope("b"): gpu.launch("k", gpu.stream())
proton.finalize()
"""


def test_trace_has_scopes_kernels_lanes_and_arrows(run: Run) -> None:
    done = run(TRACE.format(only_kernels=False))
    assert (done.exit_code, done.errors) == (0, "")
    kernels = events(done, cat="kernel")
    assert [event["args"]["call_stack"] for event in kernels] == [["ROOT", "a", "k"], ["ROOT", "b", "k"]]
    assert [round(event["dur"]) for event in kernels] == [5, 5]
    assert len({event["tid"] for event in kernels}) == 2
    scopes = events(done, cat="scope")
    assert [event["name"] for event in scopes] == ["a", "b"]
    assert [event["args"].get("metrics") for event in kernels + scopes] == [{}, {}, None, None]
    lanes = {event["tid"]: event["args"]["name"] for event in events(done, name="thread_name")}
    assert {lanes[event["tid"]].split(" ")[0] for event in kernels} == {"GPU"}
    assert {(event["tid"], lanes[event["tid"]]) for event in scopes} == {(0, "CPU Thread 0")}
    assert [event["ph"] for event in events(done, cat="flow")] == ["s", "f", "s", "f"]


VALUES = """
from bragg.proton.recording import timed_values
from bragg.proton.output import trace_file
trace_file.TRACE_OF_KERNELS_ALONE = False
session = proton.start("x", data="trace"{mode})
with proton.scope("a", {{"m": 1.0, "v": [1, 2]}}):
    proton.enter_scope("b"); proton.exit_scope(metrics={{"bytes": 5}})
    with proton.scope("none"): pass
for i in range(2):
    with proton.scope("w", {{"i": i}}): pass
{rest}
proton.finalize()
print(len(timed_values._noted))
"""


def test_trace_has_the_values_of_each_scope_that_was_entered(run: Run) -> None:
    done = run(VALUES.format(mode="", rest=""))
    assert (done.errors, done.output) == ("", "0\n")
    found = {event["name"]: event["args"]["metrics"] for event in events(done, cat="metric")}
    assert found == {
        "a: <m, 1.000000>, <v, [1,2]>": {"m": "1.000000", "v": "[1,2]"},
        "b: <bytes, 5>": {"bytes": "5"},
        "w: <i, 0>": {"i": "0"},
        "w: <i, 1>": {"i": "1"},
    }
    assert [event["name"] for event in events(done, cat="scope")] == ["none"]
    assert [event["args"]["scope_id"] for event in events(done, ph="X")] == [1, 2, 3, 4, 5]


def test_values_of_phases_that_were_written_are_forgotten(run: Run) -> None:
    rest = """
gpu.launch("k"); gpu.synchronize(); proton.data.advance_phase(session)
import pathlib, time
until = time.monotonic() + 60
while timed_values._noted and time.monotonic() < until: time.sleep(0.01)
print(len(timed_values._noted), pathlib.Path("x.part_0.chrome_trace").exists())
"""
    done = run(VALUES.format(mode=", mode='periodic_flushing:format=chrome_trace'", rest=rest))
    assert (done.errors, done.output) == ("", "0 True\n0\n")
    assert "b: <bytes, 5>" in (done.directory / "x.part_0.chrome_trace").read_text()


def test_trace_of_old_versions_has_kernels_alone(run: Run) -> None:
    done = run(TRACE.format(only_kernels=True))
    found = events(done)
    assert [event["args"]["call_stack"] for event in found] == [["ROOT", "a", "k"], ["ROOT", "b", "k"]]


def test_missing_gpu_is_named(tmp_path: Path) -> None:
    done = run_program(tmp_path, "import bragg.proton as proton\nproton.start('x', backend='cupti')")
    assert "ProfilerUnavailable: there is no NVIDIA GPU" in done.errors
    assert done.files() == set()


SAMPLED = """
gpu.set_knob("vary_ns", 0)
proton.start("x", mode={mode})
gpu.load(open({cubin!r}, "rb").read(), "softmax")
for name in ("softmax", "without_lines"): gpu.set_kernel_ns(name, 1 << 20)
for name in ("first", "second"):
    with proton.scope(name): gpu.launch("softmax", grid=(64, 1, 1))
gpu.launch("without_lines", grid=(64, 1, 1))
proton.finalize()
"""
CUBIN = str(Path(__file__).parents[1] / "golden" / "cubins" / "triton-3.9-softmax-sm90.cubin")


@pytest.mark.parametrize("mode", ["proton.mode.PCSampling(interval=4096)", "'pcsampling:interval=4096'"])
def test_instructions_are_sampled_from_the_first_launch_on_by_line(run: Run, mode: str) -> None:
    done = run(SAMPLED.format(mode=mode, cubin=CUBIN), CLOCK="real")
    assert (done.exit_code, done.errors) == (0, "")
    first, second, without_lines = done.tree()["children"]
    lines = {line["frame"]["name"]: line["metrics"] for line in first["children"][0]["children"]}
    assert set(lines) == {f"/kernels/kernels.py:{line}@softmax" for line in (18, 19, 20, 21)}
    # 2^20 ns on the fake's 4 multiprocessors, every 2^12 cycles of its 1 GHz.
    assert sum(line["num_samples"] for line in lines.values()) == 1 << 10
    assert {name: metrics for name, metrics in lines.items() if len(metrics) != 20} == {}
    metrics = lines["/kernels/kernels.py:18@softmax"]
    assert (metrics["stalled_selected"], metrics["num_stalled_samples"], metrics["stalled_wait"]) == (64, 0, 0)
    assert first["children"][0]["metrics"].keys() == {"count", "device_id", "device_type", "time (ns)"}
    assert [child["frame"]["name"] for child in second["children"]] == ["softmax"]
    assert without_lines["metrics"]["num_samples"] == 1 << 10
    assert done.tree()["metrics"].keys() >= {"num_samples", "stalled_not_Selected", "stalled_no_instruction"}


def test_where_the_driver_refuses_to_sample_kernels_are_timed_all_the_same(run: Run) -> None:
    done = run(SAMPLED.format(mode="'pcsampling'", cubin=CUBIN), FAIL="cuptiPCSamplingEnable=35")
    assert done.exit_code == 0
    assert "RmProfilingAdminOnly" in done.errors
    assert outline(done.tree())[1:3] == ["  first", "    softmax count=1"]
