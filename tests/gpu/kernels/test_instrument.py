"""Clocks inside of kernels on a real GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from bragg.model.kernels.inside import InsideKernel
from bragg.record.instrument.trial import PAIRS
from tests.gpu.conftest import Recorded, kernel_nodes, record

pytest.importorskip("triton")

from tests.support.timed_kernels import LAUNCHED, line_of

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]
BUDGET = 0.05
WAIT = "wait for a barrier in memory"


# A recording has room for the clocks of four kernels.
RECORDINGS = (
    ("copy", "softmax", "matmul", "matmul8"),
    ("matmul_tma", "matmul_tma8", "matmul_scoped", "attention"),
    ("matmul_valued", "matmul_tma_unpipelined", "matmul_scoped_pointers", "matmul_scoped_pointers8"),
)
TIMED = [name for names in RECORDINGS for name in names]


class Timed(NamedTuple):
    """A kernel, and the recording that timed it."""

    kernel: InsideKernel
    recorded: Recorded


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Timed]:
    """A kernel of those in `RECORDINGS`; each of these is made once."""

    @cache
    def recording(names: tuple[str, ...]) -> Recorded:
        options = ("--context", "shadow", "--instrument=copy|softmax|matmul|attention")
        return record(tmp_path_factory.mktemp(names[0]), "timed_kernel.py", *options, arguments=names)

    def of(name: str) -> Timed:
        recorded = recording(next(names for names in RECORDINGS if name in names))
        assert f"{name}: 60 of 60 results are equal" in recorded.stdout
        kernel, _, _, options = LAUNCHED[name]
        found = [each for each in recorded.profile.run.inside_kernels if each.kernel.startswith(f"{kernel.__name__}<")]
        if len(found) > 1:
            text = f" w{options['num_warps']} s{options['num_stages']} "
            found = [each for each in found if text in each.kernel]
        (told,) = found
        print(name, told.level, f"{(told.cost or 0) * 100:.1f} %", told.refused)
        return Timed(told, recorded)

    return of


@pytest.mark.parametrize("name", TIMED)
def test_results_are_equal_and_the_cost_is_within_its_budget(timed: Callable[[str], Timed], name: str) -> None:
    kernel, _ = timed(name)
    assert kernel.level
    assert kernel.pairs == PAIRS
    assert kernel.cost is not None
    assert kernel.cost <= BUDGET
    assert kernel.registers[0] > 0
    # A warp's time is that of the kernel: the clock and the global timer agree.
    assert 0.8 < kernel.span_ns / kernel.timed_ns < 1.1  # of one launch, and the median of five
    assert 1.0 < kernel.clock_ghz < 2.1
    assert sum(each.total for each in kernel.stretches) <= kernel.covered_cycles <= kernel.warp_cycles


def test_waits_of_a_pipelined_product_stand_at_its_line(timed: Callable[[str], Timed]) -> None:
    kernel, recorded = timed("matmul_tma")
    profile = recorded.profile
    loop = [each for each in kernel.stretches if each.in_loop]
    assert {each.lines[-1].line for each in loop} <= {line_of("matmul_tma", text) for text in ("for step", "tl.dot")}
    waits = sum(each.total for each in loop if each.does == WAIT) / kernel.covered_cycles
    # Without a pipeline, each turn begins its copies and waits for them.
    other, _ = timed("matmul_tma_unpipelined")
    all_waits = sum(each.total for each in other.stretches if each.does == WAIT) / other.covered_cycles
    print(waits, all_waits, [(each.does, each.lines[-1].line, each.total) for each in kernel.stretches])
    assert 0.05 < waits < all_waits
    assert all_waits > 0.2
    (node,) = kernel_nodes(profile, under=f"{kernel.kernel} (with clocks)")
    assert profile.inclusive("warp_cycles")[node] == kernel.covered_cycles
    assert "inside matmul_tma<" in recorded.stderr + recorded.stdout


def test_scopes_are_timed_from_their_first_effect_to_the_last(timed: Callable[[str], Timed]) -> None:
    kernel, _ = timed("matmul_scoped")
    print([(each.does, each.count) for each in kernel.stretches])
    assert kernel.level == "scopes"
    assert {each.does for each in kernel.stretches} == {"load", "multiply"}
    # The wait for what was loaded stands at the line of the loop, in no scope.
    assert 0.1 < sum(each.total for each in kernel.stretches) / kernel.covered_cycles < 0.5


def test_of_a_tuned_kernel_the_chosen_configuration_has_clocks(run: Run) -> None:
    recorded = run("timed_kernel.py", "--context", "shadow", "--instrument=copy", arguments=["tuned", "softmax"])
    assert "tuned: 60 of 60 results are equal" in recorded.stdout
    (kernel,) = recorded.profile.run.inside_kernels
    print(kernel.kernel, kernel.level)
    assert kernel.kernel.startswith("copy<")
    assert kernel.pairs == PAIRS
    # What is not wanted stays as it is.
    assert "softmax: 60 of 60 results are equal" in recorded.stdout
    other = "softmax<BLOCK=1024 w4 s3 f16>"
    assert kernel_nodes(recorded.profile, under=other).size
    assert not kernel_nodes(recorded.profile, under=f"{other} (with clocks)").size


# Processes of their own compile; to start them takes longer than what they do here.
IN_ONE_PROCESS = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


@pytest.mark.parametrize(("launcher", "variables"), [("pytorch", {}), ("triton", IN_ONE_PROCESS)])
def test_kernels_that_pytorch_generates_have_clocks(run: Run, launcher: str, variables: dict[str, str]) -> None:
    options = ("--context", "shadow", "--instrument=triton_")
    recorded = run("timed_compiled.py", *options, arguments=[launcher], **variables)
    assert "60 of 60 results are equal" in recorded.stdout
    kernels = recorded.profile.run.inside_kernels
    print([(kernel.kernel, kernel.level, f"{(kernel.cost or 0) * 100:.1f} %", kernel.refused) for kernel in kernels])
    assert kernels
    for kernel in kernels:
        assert kernel.level
        assert kernel.pairs == PAIRS
        assert kernel_nodes(recorded.profile, under=f"{kernel.kernel} (with clocks)").size
        assert kernel_nodes(recorded.profile, under=kernel.kernel).size


def test_kernels_that_pytorch_records_into_graphs_have_clocks_in_replays(run: Run) -> None:
    options = ("--context", "shadow", "--instrument=triton_")
    recorded = run("timed_compiled.py", *options, arguments=["graphs"], **IN_ONE_PROCESS)
    assert "60 of 60 results are equal" in recorded.stdout
    kernels = recorded.profile.run.inside_kernels
    print([(kernel.kernel, kernel.level, kernel.pairs, kernel.replays, kernel.refused) for kernel in kernels])
    assert kernels
    for kernel in kernels:
        assert kernel.level
        assert kernel.replays >= 58  # some of its 62 calls come before the replays
        assert kernel.stretches


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Timed]:
    """A kernel in a graph that is replayed, after so many launches outside of it, 0 or 12."""

    @cache
    def recording(*arguments: str) -> Recorded:
        options = ("--context", "shadow", "--instrument=.", "--instrument-budget=1.0")
        return record(tmp_path_factory.mktemp("graph"), "timed_kernel.py", *options, arguments=arguments)

    def of(name: str, before: int) -> Timed:
        recorded = recording("matmul_tma:12", "softmax:12") if before else recording(f"{name}:0")
        assert f"{name}: 10 of 10 results are equal" in recorded.stdout
        found = [each for each in recorded.profile.run.inside_kernels if each.kernel.startswith(f"{name}<")]
        return Timed(*found, recorded)

    return of


# A replay's time, between events, has some microseconds before and after its blocks; softmax takes 150 us. Of sampled
# blocks the last one may end before the last of all.
@pytest.mark.parametrize(
    ("name", "before", "least"), [("matmul_tma", 0, 0.93), ("matmul_tma", 12, 0.98), ("softmax", 12, 0.85)]
)
def test_the_last_replay_of_a_graph_is_whole(
    replayed: Callable[[str, int], Timed], name: str, before: int, least: float
) -> None:
    kernel, recorded = replayed(name, before)
    *_, took_ns = map(int, re.findall(rf"{name}: a replay took (\d+) ns", recorded.stdout))
    print(name, before, kernel.level, kernel.pairs, kernel.span_ns / took_ns, kernel.refused)
    assert (kernel.level, kernel.pairs) == (("everything", PAIRS) if before else ("everything in sampled blocks", 0))
    assert kernel.replays == 10
    assert least < kernel.span_ns / took_ns < 1.0
    assert 0 < sum(each.total for each in kernel.stretches) <= kernel.covered_cycles <= kernel.warp_cycles
    assert kernel_nodes(recorded.profile, under=f"{kernel.kernel} (with clocks)").size


def test_probes_count_what_is_known_of_a_kernel(run: Run) -> None:
    recorded = run(
        "timed_kernel.py", "--context", "shadow", "--instrument=.", "--instrument-probes=all", arguments=["softmax"]
    )
    assert "60 of 60 results are equal" in recorded.stdout
    (kernel,) = recorded.profile.run.inside_kernels
    print(kernel.level, *kernel.counts, sep="\n")
    assert kernel.probed_blocks == 512
    counts = {(each.probe, each.does, each.lines[-1].line): each for each in kernel.counts}
    line = line_of("softmax", "tl.store")
    for what, at in (("stores", line), ("loads", line_of("softmax", "for start") + 2)):
        access = counts["accesses", what, at]
        assert access.warps == 512 * 4 * 8
        assert access.lanes == 32 * access.warps
        assert access.sectors == 16 * access.warps  # 32 lanes with 16 bytes each, side by side
    assert counts["branches", "another turn of the loop", line_of("softmax", "for start")].turns == 8
    values = counts["values", "stores", line]
    assert values.greatest is not None
    assert 0 < values.greatest <= 1
    assert values.first_bad is None


def test_the_first_number_that_is_not_finite_is_found(run: Run) -> None:
    recorded = run(
        "timed_kernel.py",
        "--context",
        "shadow",
        "--instrument=.",
        "--instrument-probes=values",
        arguments=["softmax_spoilt"],
    )
    (kernel,) = recorded.profile.run.inside_kernels
    (values,) = kernel.counts
    print(values)
    assert values.first_bad is not None
    assert values.first_bad[0] == 32
    assert values.greatest is not None
    assert math.isnan(values.greatest)


def test_values_of_scopes_are_those_of_the_program(timed: Callable[[str], Timed]) -> None:
    kernel, _ = timed("matmul_valued")
    print(kernel.values)
    told = {each.scope: each for each in kernel.values}
    load, multiply = told["load"], told["multiply"]
    assert (load.least, load.greatest, load.not_finite) == (0, 127, 0)  # 8192 in steps of 64
    assert (multiply.least, multiply.count) == (0, load.count)
    assert multiply.greatest <= (8192 - 128) / 4
    assert (told["store"].least, told["store"].greatest) == (-1, -1)


def test_events_end_turns_after_their_begin(run: Run) -> None:
    options = ("--context", "shadow", "--data", "trace", "--instrument=ahead", "--instrument-budget=1.0")
    recorded = run("timed_events.py", *options)
    assert "60 of 60 results are right" in recorded.stdout
    (kernel,) = recorded.profile.run.inside_kernels
    (event,) = kernel.events
    n_blocks = event.latency.count // 14  # 16 turns, of which the last two begin what does not end
    assert n_blocks >= 1
    assert (event.name, event.latency.count, event.unmatched) == ("ahead", 14 * n_blocks, 4 * n_blocks)
    assert [value for value, _ in event.by_value] == list(range(14))
    # An event lasts more than two turns of a warp, of 16.
    warps = kernel.covered_cycles / max(kernel.warps_with_times, 1)
    assert warps / 16 < event.latency.typical <= event.latency.longest < warps
    tracks = recorded.profile.tracks
    assert any(tracks.label(track).endswith(", events") for track in range(len(tracks)))


def test_readings_that_wait_in_shared_memory_are_whole(run: Run) -> None:
    options = ("--instrument=.", "--instrument-shared", "--instrument-budget=1.0")
    recorded = run("timed_kernel.py", "--context", "shadow", *options, arguments=["softmax", "matmul8"])
    assert recorded.stdout.count(": 60 of 60 results are equal") == 2
    kernels = recorded.profile.run.inside_kernels
    assert len(kernels) == 2
    for kernel in kernels:
        print(kernel.kernel, kernel.level, kernel.shared_bytes, kernel.blocks_at_once, kernel.cost)
        assert kernel.blocks_at_once[1] >= kernel.blocks_at_once[0]
        assert kernel.shared_bytes[1] > kernel.shared_bytes[0]
        assert 0 < sum(each.total for each in kernel.stretches) <= kernel.covered_cycles <= kernel.warp_cycles
