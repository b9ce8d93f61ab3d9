"""Instruction sampling on a real GPU."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bragg.analyze.kernel_choice import choose_kernel
from bragg.analyze.source_lines import annotate
from bragg.code.source_map import Stage, code_of_kernels
from bragg.model import Profile
from bragg.model.meta.telemetry import telemetry_of
from tests.gpu.conftest import PROGRAMS, Recorded, record

pytestmark = pytest.mark.cuda
MODES = ("continuous", "windows", "serialized")
SOURCE = (PROGRAMS / "sampled.py").read_text().splitlines()
SECONDS = "4"


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """The program with the known kernels, sampled in one of the modes; each is recorded once."""
    found: dict[str, Recorded] = {}

    def of(mode: str) -> Recorded:
        if mode not in found:
            options = [f"--sample={mode}", "--sample-budget=20%", "--context=shadow"]
            found[mode] = record(tmp_path_factory.mktemp(mode), "sampled.py", *options, arguments=[SECONDS])
        return found[mode]

    return of


def line_of(text: str) -> int:
    """Number of the only line of the program with a text."""
    (number,) = [number for number, line in enumerate(SOURCE, 1) if text in line]
    return number


def shares(profile: Profile, kernel: str) -> dict[int, float]:
    """Share of a kernel's samples by line of its function."""
    code = annotate(profile, choose_kernel(profile, kernel), None)
    return {line.number: line.samples.count / code.total.count for line in code.sections[0].lines}


def share_of_path(profile: Profile, scope: str) -> float:
    """Share of a scope in the samples of the two scopes that launch the same matmul."""
    tree, samples = profile.tree, profile.inclusive("num_samples")
    of = {tree.label(node): float(samples[node]) for node in range(len(tree)) if tree.label(node) in ("small", "large")}
    return of[scope] / sum(of.values())


@pytest.mark.parametrize("mode", MODES)
def test_the_slow_line_of_the_softmax_is_the_hottest(sampled: Callable[[str], Recorded], mode: str) -> None:
    found = shares(sampled(mode).profile, "softmax")
    assert max(found, key=found.__getitem__) == line_of("tl.sin(")


@pytest.mark.parametrize("mode", MODES)
def test_the_matmul_waits_where_it_loads_and_multiplies(sampled: Callable[[str], Recorded], mode: str) -> None:
    recorded = sampled(mode)
    found = shares(recorded.profile, "matmul")
    hottest = sorted(found, key=found.__getitem__, reverse=True)[:3]
    assert line_of("tl.dot(") in hottest
    assert {line_of("x = tl.load("), line_of("y = tl.load(")} & set(hottest)
    assert recorded.profile.total("num_stalled_samples") > 0
    assert "instruction samples (" in recorded.stderr


@pytest.mark.parametrize("mode", ["continuous", "windows"])
def test_lines_and_call_paths_agree_with_those_of_single_launches(
    sampled: Callable[[str], Recorded], mode: str
) -> None:
    profile, exact = sampled(mode).profile, sampled("serialized").profile
    for kernel in ("matmul", "softmax"):
        found, expected = shares(profile, kernel), shares(exact, kernel)
        top = sorted(expected, key=expected.__getitem__, reverse=True)[:5]
        assert {line: found[line] for line in top} == pytest.approx({line: expected[line] for line in top}, abs=0.1)
    assert share_of_path(profile, "large") == pytest.approx(share_of_path(exact, "large"), abs=0.1)


def test_serialized_samples_are_exact(sampled: Callable[[str], Recorded]) -> None:
    sampling = sampled("serialized").profile.meta["sampling"]
    assert sampling["exact"] > 0.99 * sampling["samples"]


def test_windows_stay_within_their_budget(sampled: Callable[[str], Recorded]) -> None:
    cycle = sampled("windows").profile.meta["sampling"]["cycle"]
    assert cycle["windows"] >= 3
    assert cycle["reached"] < 1.5 * cycle["budget"]


@pytest.mark.parametrize("mode", MODES)
def test_a_training_step_is_sampled(tmp_path: Path, mode: str) -> None:
    for steps in ("100", "400", "1600"):  # beside other programs the first window comes late
        (directory := tmp_path / steps).mkdir()
        options = [f"--sample={mode}", "--sample-period=12"]
        profile = record(directory, "training.py", *options, arguments=[steps]).profile
        if mode != "windows" or profile.meta["sampling"]["cycle"]["windows"]:
            break
    assert "num_samples" in profile.metrics, json.dumps(profile.meta["sampling"])
    assert profile.total("num_samples") > 0


def test_a_profile_that_was_moved_shows_every_text(sampled: Callable[[str], Recorded], tmp_path: Path) -> None:
    recorded = sampled("continuous")
    codes = code_of_kernels(recorded.profile.sources)
    assert {code.symbol: set(code.texts) for code in codes.values()} == {
        "matmul": set(Stage),
        "softmax": set(Stage),
    }
    shutil.copy(recorded.path, tmp_path / "moved.bragg")
    for options in ([], ["--ir=ttgir"], ["--ir=ptx"], ["--ir=sass"]):
        command = [sys.executable, "-m", "bragg", "source", "moved.bragg", "matmul", *options]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout
        assert " % stalled" in shown
        assert any(": long_scoreboard " in line or "tensor core: " in line for line in shown.splitlines())


def test_energy_of_telemetry_is_mean_power_by_time(tmp_path: Path) -> None:
    recorded = record(tmp_path, "telemetry.py", "--telemetry", "10", "--data=trace", arguments=["12"])
    told = telemetry_of(recorded.profile.meta)
    assert told is not None
    (gpu,) = told.gpus
    print(json.dumps(recorded.profile.meta["telemetry"], indent=1))
    power = gpu.mean("power_w")
    assert power is not None
    assert gpu.energy_j is not None
    assert gpu.energy_j == pytest.approx(power * gpu.energy_ns / 1e9, rel=0.05)
    assert gpu.values["power_w"].samples > 100
    assert gpu.values["sm_clock_mhz"].most > 500
    assert gpu.values["sm_clock_mhz"].samples >= 12  # one a second, however long a call takes
    assert told.missed_samples <= 0.05 * gpu.values["power_w"].samples  # beside other programs a call takes long


def test_the_thread_of_telemetry_takes_a_thousandth_of_a_core(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAMS / "telemetry.py"), "thread", "10"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    share = float(done.stdout.splitlines()[-1])
    print(f"the thread of telemetry takes {100 * share:.3f} % of a core at 10 Hz")
    assert share <= 0.0015  # 0.1 % on a quiet machine


def test_telemetry_costs_next_to_nothing(tmp_path: Path) -> None:
    """Ten times as many samples as usual cost no more than ten times the limit.

    Medians over pairs of bursts; what noise leaves open is within two standard errors of the median.
    """
    times_as_often = 10
    command = [sys.executable, str(PROGRAMS / "telemetry.py"), "pairs", "24", str(10 * times_as_often)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=True)
    for bound, ratios in json.loads(done.stdout.splitlines()[-1]).items():
        cost = (statistics.median(ratios) - 1) / times_as_often
        error = 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5 / times_as_often
        print(f"{bound}-bound: {100 * cost:+.4f} % +- {200 * error:.4f} at 10 Hz")
        assert cost <= 0.001 + 2 * error
