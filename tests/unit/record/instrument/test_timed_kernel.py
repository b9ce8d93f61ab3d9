"""Launches of a kernel with clocks, on a driver that keeps the time itself."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg.code.instrument import assembling
from bragg.code.instrument.assembling import Binary, assemble, find_ptxas
from bragg.code.instrument.probes import Probe
from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC
from bragg.code.instrument.storing import WARP_BYTES
from bragg.code.sass.disassembler import disassemble
from bragg.model.kernels.inside import READING
from bragg.model.kernels.inside_rows import inside_kernels
from bragg.record.instrument import guard, timed_kernel
from bragg.record.instrument.buffers import plan
from bragg.record.instrument.driver import DriverError
from bragg.record.instrument.levels import levels_of
from bragg.record.instrument.timed_kernel import Limits, TimedKernel
from bragg.record.instrument.trial import PAIRS
from bragg.views.text.clock_facts import clock_lines

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled  # noqa: E402

PLAIN = 7
TRIAL = ([PLAIN, 101, 101, PLAIN] * PAIRS)[: 2 * PAIRS]
PTXAS = find_ptxas(triton, "sm_90a", os.environ)


class FakeDriver:
    """Events have the time of a clock that launches set on; memory holds the headers of warps that took 1000 cycles."""

    now_ns = 0.0
    capturing = False
    replays = 0
    is_replaying = False
    late = False
    broken = ""
    places = 132
    room_bytes = 1 << 20
    per_launch_ns = 1000.0
    host_ns = 0.0
    held_ns = 0.0

    def __init__(self) -> None:
        self.events: list[float] = []
        self.sizes: dict[int, int] = {}
        self.cleared: list[int] = []

    def is_capturing(self, stream: int) -> bool:
        return FakeDriver.capturing

    def relaxed(self) -> AbstractContextManager[None]:
        return nullcontext()

    current = relaxed

    def zeros(self, size_bytes: int) -> int:
        if FakeDriver.broken == "zeros":
            raise DriverError("cuMemAlloc_v2 returned 2")
        self.sizes[len(self.sizes)] = size_bytes
        return (len(self.sizes) << 32) + 256

    def clear(self, address: int, size_bytes: int) -> None:
        self.cleared.append(address)

    def symbol(self, module: int, name: str) -> int:
        return module

    def resident_blocks(self, function: int, threads: int, shared_bytes: int) -> int:
        plain_bytes = compiled("matmul_tma").metadata.shared
        fitting = 2 if function == PLAIN else 1
        return FakeDriver.places * (fitting if shared_bytes <= plain_bytes + FakeDriver.room_bytes else fitting - 1)

    def write(self, address: int, content: bytes) -> int:
        return self.event()

    def read(self, address: int, size_bytes: int) -> bytes:
        if size_bytes % WARP_BYTES == 0 and address % WARP_BYTES == 0:
            return bytes(size_bytes)
        words = np.zeros((size_bytes // HEADER_BYTES, HEADER_BYTES // 4), np.uint32)
        words[:, 2], words[:, 4], words[:, 6], words[:, 8] = 500, 700, 1500, MAGIC
        words[:, 13] = FakeDriver.replays
        if FakeDriver.is_replaying:
            words[-1, 0] = 900  # the last warp has begun again
        return words.tobytes()

    def event(self) -> int:
        self.events.append(0.0)
        return len(self.events) - 1

    def hold(self, stream: int) -> None:
        FakeDriver.held_ns = 200_000

    def record(self, event: int, stream: int) -> None:
        self.events[event] = FakeDriver.now_ns

    def is_done(self, event: int) -> bool:
        return not FakeDriver.late

    def between_ns(self, first: int, second: int) -> float:
        return self.events[second] - self.events[first]


class Machine:
    """A kernel of the fake driver: its launches, and how much longer those with clocks take, level by level."""

    def __init__(
        self, costs: list[float], name: str = "matmul_tma", probes: Sequence[Probe] = (), *, in_shared: bool = False
    ) -> None:
        self.costs = costs
        self.launched: list[int] = []
        self.loaded = 0
        limits = Limits(0.05, 64 << 20, False, probes, in_shared)
        self.kernel = TimedKernel(compiled(name), f"{name}<w4 s3>", self.launch, self.load, PTXAS, limits)

    def load(self, symbol: str, cubin: bytes, shared_bytes: int) -> tuple[int, int]:
        self.loaded += 1
        return 1, 100 + self.loaded

    def launch(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> str:
        self.launched.append(function)
        FakeDriver.now_ns += max(FakeDriver.host_ns - FakeDriver.held_ns, 0)
        FakeDriver.held_ns = 0
        FakeDriver.now_ns += FakeDriver.per_launch_ns * (1 if function == PLAIN else 1 + self.costs[function - 101])
        return "launched"

    def run(self, times: int, grid: tuple[int, int, int] = (64, 1, 1)) -> None:
        for _ in range(times):
            assert self.kernel(*grid, 0, PLAIN, "argument") == "launched"


@cache
def assembled(ptxas: str, text: str, *options: str) -> Binary:
    """Most tests assemble the same texts."""
    return assemble(ptxas, text, options, 60)


@cache
def disassembled(tool: str, cubin: bytes) -> Any:
    return disassemble(tool, cubin, 60)


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(timed_kernel, "Driver", FakeDriver)
    for module in (assembling, timed_kernel):
        monkeypatch.setattr(module, "assemble", lambda ptxas, text, options, _: assembled(ptxas, text, *options))
    monkeypatch.setattr(guard, "disassemble", lambda tool, cubin, _: disassembled(tool, cubin))
    monkeypatch.setattr(timed_kernel.core, "name_kernel", lambda *_: None)
    FakeDriver.capturing, FakeDriver.late, FakeDriver.broken = False, False, ""
    FakeDriver.replays, FakeDriver.is_replaying = 0, False
    FakeDriver.per_launch_ns, FakeDriver.room_bytes = 1000.0, 1 << 20
    FakeDriver.host_ns = 0
    return iter(())


def test_launches_alternate_and_then_stay_plain() -> None:
    machine = Machine([0.02])
    machine.run(40)
    assert machine.launched == TRIAL + [PLAIN] * (40 - 2 * PAIRS)
    result = machine.kernel.result(0, is_end=False)
    assert result is not None
    assert (result["level"], result["pairs"], result["refused"]) == ("everything", PAIRS, [])
    assert result["timed_ns"] / result["plain_ns"] == pytest.approx(1.02)
    assert (result["blocks"], result["warps"], result["warps_with_frames"]) == (64, 4, 256)
    assert (result["covered_cycles"], result["span_ns"]) == (256 * 1000, 700)
    assert result["blocks_at_once"] == [264, 132]
    assert machine.kernel.result(0, is_end=False) is None  # told once


def test_a_level_that_costs_too_much_gives_way() -> None:
    machine = Machine([0.2, 0.09, 0.04])
    machine.run(60)
    result = machine.kernel.result(0, is_end=False)
    assert result is not None
    assert result["level"] == "waits"
    assert [(each["level"], each["why"]) for each in result["refused"]] == [
        ("everything", "cost"),
        ("without shared memory", "cost"),
    ]
    assert machine.launched.count(PLAIN) == 60 - 3 * PAIRS


def test_where_all_cost_too_much_nothing_is_told() -> None:
    machine = Machine([0.3] * 6)
    machine.run(100)
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    assert "level" not in result
    assert len(result["refused"]) == 6
    (told,) = inside_kernels([result])
    assert (told.level, told.cost, told.stretches) == ("", None, ())


@pytest.mark.parametrize(("room_bytes", "taken"), [(33_000, 32_768), (20_000, 16_384), (4096, 4096), (4095, 0)])
def test_readings_wait_in_shared_memory_where_as_many_blocks_fit(room_bytes: int, taken: int) -> None:
    FakeDriver.room_bytes = room_bytes
    machine = Machine([0.0, 0.0], in_shared=True)
    machine.run(2 * PAIRS + 1)
    result = machine.kernel.result(0, is_end=False)
    assert result is not None
    before, after = result["shared_bytes"]
    assert (result["level"], after - before) == ("everything", taken)
    assert [each["why"] for each in result["refused"]] == ([] if taken else ["it has no room for readings of 4 warps"])


def test_two_launches_are_enough_and_one_is_not() -> None:
    few, one = Machine([0.0]), Machine([0.0])
    few.run(2)
    one.run(1)
    told, nothing = few.kernel.result(1, is_end=True), one.kernel.result(1, is_end=True)
    assert told is not None
    assert (told["level"], told["pairs"]) == ("everything", 1)
    assert nothing == {"kernel": "matmul_tma<w4 s3>", "refused": [], "warps": 4}


def test_a_kernel_that_spills_with_clocks_has_fewer() -> None:
    machine = Machine([0.0], "matmul80")
    machine.run(2 * PAIRS + 1)
    result = machine.kernel.result(0, is_end=False)
    assert result is not None
    assert [(each["level"], each["why"]) for each in result["refused"]] == [
        ("everything", "spills"),
        ("without shared memory", "spills"),
    ]
    assert result["level"] == "waits"


def test_clocks_have_the_registers_of_the_kernel_where_nothing_spills() -> None:
    machine = Machine([0.0], "softmax")
    machine.run(2)
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    plain, clocked = result["registers"]
    assert clocked <= math.ceil(plain / 8) * 8
    assert result["level"] == "everything"


def test_other_grids_are_launched_as_they_are() -> None:
    machine = Machine([0.0])
    machine.run(2, (64, 1, 1))
    machine.run(5, (65, 1, 1))
    machine.run(2 * PAIRS - 2)
    assert machine.launched == TRIAL[:2] + [PLAIN] * 5 + TRIAL[2:]


def captured(machine: Machine, times: int = 5) -> None:
    FakeDriver.capturing = True
    machine.run(times)
    FakeDriver.capturing = False


def test_of_a_graph_the_first_launch_has_the_clocks_that_were_accepted() -> None:
    machine = Machine([0.02, 0.0])
    machine.run(2 * PAIRS + 3)
    captured(machine)
    assert machine.launched == TRIAL + [PLAIN] * 3 + [102] + [PLAIN] * 4
    FakeDriver.replays = 10
    assert machine.kernel.result(0, is_end=False) is None  # there may be further replays
    result = machine.kernel.result(0, is_end=True)
    assert result is not None
    assert (result["level"], result["pairs"], result["replays"]) == ("everything", PAIRS, 10)
    assert result["timed_ns"] / result["plain_ns"] == pytest.approx(1.02)
    assert result["warps_with_frames"] == 256


def test_a_kernel_of_graphs_alone_has_the_least_clocks_with_stretches_at_an_unknown_cost() -> None:
    machine = Machine([0.0] * 3)
    captured(machine)
    assert machine.launched == [103] + [PLAIN] * 4
    machine.run(5)
    assert machine.launched[5:] == [PLAIN] * 5
    FakeDriver.replays = 3
    result = machine.kernel.result(0, is_end=True)
    assert result is not None
    assert (result["level"], result["pairs"], result["refused"]) == ("everything in sampled blocks", 0, [])
    (told,) = inside_kernels([result])
    assert (told.cost, told.replays) == (None, 3)
    first, *_ = clock_lines({"inside_kernels": [result]})
    assert first.startswith("inside matmul_tma<w4 s3>: clocks of everything in sampled blocks cost what is not known")
    assert first.endswith("; the last of 3 replays of its CUDA graph")


def test_one_pair_before_a_capture_decides() -> None:
    cheap, dear = Machine([0.0, 0.0]), Machine([0.2, 0.0, 0.0, 0.0])
    for machine in (cheap, dear):
        machine.run(2)
        captured(machine)
    FakeDriver.replays = 1
    results = [machine.kernel.result(0, is_end=True) or {} for machine in (cheap, dear)]
    assert [(each["level"], each["pairs"]) for each in results] == [
        ("everything", 1),
        ("everything in sampled blocks", 0),
    ]
    assert [each["why"] for each in results[1]["refused"]] == ["cost"]


def test_launches_that_are_not_done_at_a_capture_keep_clocks_out_of_it() -> None:
    machine = Machine([0.0])
    machine.run(1)
    FakeDriver.late = True
    captured(machine)
    FakeDriver.late = False
    machine.run(2)
    assert machine.launched == [PLAIN] + [PLAIN] * 5 + [101, 101]


def test_what_was_measured_before_a_graph_that_is_never_replayed_is_kept() -> None:
    machine, alone = Machine([0.0, 0.0]), Machine([0.0] * 3)
    machine.run(2 * PAIRS)
    captured(machine)
    captured(alone)
    kept, nothing = machine.kernel.result(0, is_end=True), alone.kernel.result(0, is_end=True)
    assert kept is not None
    assert nothing is not None
    assert (kept["level"], kept["replays"]) == ("everything", 0)
    assert "level" not in nothing
    assert [each["why"] for each in nothing["refused"]] == [timed_kernel._NOT_REPLAYED]


def test_a_replay_that_is_under_way_is_not_read() -> None:
    machine = Machine([0.0] * 3)
    captured(machine)
    FakeDriver.replays, FakeDriver.is_replaying = 2, True
    result = machine.kernel.result(0.01, is_end=True)
    assert result is not None
    assert "level" not in result


def test_a_launch_in_a_graph_has_a_grid_of_its_own() -> None:
    machine = Machine([0.0, 0.0])
    machine.run(2 * PAIRS, (2048, 1, 1))
    FakeDriver.capturing = True
    machine.run(1, (40, 1, 1))
    FakeDriver.replays = 1
    result = machine.kernel.result(0, is_end=True)
    assert result is not None
    assert (result["blocks"], result["warps_with_frames"]) == (40, 160)


def test_one_launch_has_probes_and_then_clocks_are_tried() -> None:
    machine = Machine([0.0, 9.0], probes=[Probe.BRANCHES])
    machine.run(2 * PAIRS + 5)
    assert machine.launched == [102] + TRIAL + [PLAIN] * 4
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    assert result["probed_blocks"] == 64
    assert result["level"] == "everything"


def test_a_kernel_that_has_nothing_to_count_has_clocks_alone() -> None:
    machine = Machine([0.0], probes=[Probe.ACCESSES])
    machine.run(2 * PAIRS + 1)
    result = machine.kernel.result(0, is_end=False)
    assert result is not None
    assert (result["level"], result["refused"]) == (
        "everything",
        [{"level": "probes", "why": "it has nothing of what is counted"}],
    )


def test_waits_that_clocks_add_to_loops_are_told() -> None:
    machine = Machine([0.0], "attention80")
    machine.run(2)
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    assert result["loop_waits"] == {"DEPBAR": (1, 9)}
    (told,) = inside_kernels([{**result, "loop_waits": {"DEPBAR": [1, 9]}}])
    assert told.loop_waits == (("DEPBAR", 1, 9),)


def test_a_kernel_in_which_waits_cost_too_much_is_timed_in_some_warps_or_blocks() -> None:
    warps, blocks = Machine([0.3, 0.2, 0.1, 0.01]), Machine([0.3, 0.2, 0.1, 0.1, 0.01])
    found = []
    for machine in (warps, blocks):
        machine.run(100, (2048, 1, 1))
        result = machine.kernel.result(0, is_end=False)
        assert result is not None
        found.append((result["level"], result["warps_with_frames"]))
    assert found == [
        ("waits of sampled warps", 1024),  # one of two blocks has room, all warps of which would fill it
        ("everything in sampled blocks", 132 + math.ceil((2048 - 132) / 32)),
    ]


def test_each_block_of_a_cluster_is_one_and_none_are_sampled() -> None:
    machine = Machine([0.0], "copy_cluster")
    machine.run(2 * PAIRS)
    told = machine.kernel.result(1.0, is_end=True)
    assert told["blocks"] == 2 * 64
    assert told["blocks_with_times"] == 2 * 64
    assert not [level for level in levels_of(None, has_clusters=True) if level.block_shift]


def test_clocks_that_rise_all_along_make_no_cost() -> None:
    machine = Machine([0.0])
    for _ in range(2 * PAIRS):
        machine.run(1)
        FakeDriver.per_launch_ns += 30
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    assert result["timed_ns"] == result["plain_ns"] == 1000 + 30 * 5.5


def test_time_that_the_gpu_waits_for_the_host_is_no_time_of_the_kernel() -> None:
    machine = Machine([0.09, 0.0])
    FakeDriver.host_ns = 20_000
    machine.run(4 * PAIRS)
    result = machine.kernel.result(1, is_end=True)
    assert result is not None
    (refused,) = result["refused"]
    assert (refused["why"], refused["plain_ns"], refused["timed_ns"]) == ("cost", 1000, 1090)
    assert result["plain_ns"] == 1000


def test_launches_that_the_gpu_has_not_done_are_waited_for_until_the_end() -> None:
    machine = Machine([0.0])
    machine.run(1)
    FakeDriver.late = True
    machine.run(30)
    assert machine.kernel.result(0, is_end=False) is None
    FakeDriver.late = False
    result = machine.kernel.result(5, is_end=True)
    assert result is not None
    assert result["level"] == "everything"


def test_a_driver_that_fails_leaves_the_launch_alone(capsys: pytest.CaptureFixture[str]) -> None:
    FakeDriver.broken = "zeros"
    machine = Machine([0.0])
    machine.run(5)
    assert machine.launched == [PLAIN] * 5
    assert "has no clocks any more: DriverError: cuMemAlloc_v2 returned 2" in capsys.readouterr().err


def test_a_launch_that_raises_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([0.0])

    def fail(*_: Any) -> None:
        raise RuntimeError("out of resources")

    monkeypatch.setattr(machine.kernel, "_launch", fail)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="out of resources"):
            machine.kernel(64, 1, 1, 0, PLAIN)


@pytest.mark.parametrize("blocks", [1, 2, 63, 4096, 1 << 20])
@pytest.mark.parametrize("warps", [1, 4, 16])
def test_readings_fit_into_their_memory(blocks: int, warps: int) -> None:
    whole = plan(blocks, warps, 64 << 20)
    assert whole.frame_bytes <= 64 << 20
    assert whole.header_bytes <= 4 << 20
    for found in (whole, whole.sampled(0, 0, (0,)), whole.sampled(5, 264, (0,)), whole.sampled(5, 1 << 20, (0,))):
        assert (found.frame_bytes, found.header_bytes) <= (whole.frame_bytes, whole.header_bytes)
        assert found.frame_shift >= found.header_shift
        later = np.maximum(np.arange(blocks) - found.first_blocks, 0)
        with_frames = np.count_nonzero(later % (1 << found.frame_shift) == 0)
        assert found.frame_bytes == with_frames * len(found.chosen_warps) * WARP_BYTES


def test_the_kernel_is_told_which_blocks_and_warps_store() -> None:
    whole = plan(2048, 8, 64 << 20)
    assert struct.unpack("<QQIIII", whole.control(64, 128)) == (64, 128, 0, 3, 0, 0xFF)
    assert struct.unpack("<QQIIII", whole.sampled(5, 132, (0, 4)).control(64, 128)) == (64, 128, 31, 31, 132, 0x11)


def test_of_few_waves_the_first_is_no_sample() -> None:
    assert plan(128, 4, 64 << 20).sampled(5, 132, (0,)).frame_blocks == 4
    assert plan(1055, 4, 64 << 20).sampled(5, 132, (0,)).first_blocks == 0
    assert plan(1056, 4, 128 << 20).sampled(5, 132, (0,)).first_blocks == 132


def test_the_cache_of_triton_stays_as_it_was() -> None:
    files = [Path(each) for each in compiled("matmul_tma").metadata_group.values()]
    before = {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in files[0].parent.iterdir()}
    assert set(files) <= before.keys()
    machine = Machine([0.2, 0.0, 0.0], probes=[Probe.BRANCHES])
    machine.run(3 * PAIRS)
    assert machine.kernel.result(1, is_end=True) is not None
    assert {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in files[0].parent.iterdir()} == before


def test_copies_of_readings_stand_below_the_state_that_views_leave_out() -> None:
    assert timed_kernel.STATE == READING
