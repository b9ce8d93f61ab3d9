"""Programs that profilers have broken: their results, exit codes and endings are those without bragg."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bragg

pytestmark = pytest.mark.cuda
PROGRAMS = Path(__file__).parent / "programs" / "untouched"
RUN = (sys.executable, "-m", "bragg", "run", "--force", "--no-summary", "-o", "run.bragg")


def ended(command: list[str], directory: Path) -> tuple[int, list[str]]:
    """The exit code of a program and the lines that it prints."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout.splitlines() or done.stderr.splitlines()[-3:]


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_captures_are_right_while_another_thread_records(mode: str, tmp_path: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "captures.py"), mode]
    assert ended([*program, "nothing"], tmp_path) == (0, ["right 12"])
    assert ended([*program, "bragg"], tmp_path) == (0, ["right 12"])
    assert ended([*RUN, *program, "bragg"], tmp_path)[1][0] == "right 12"


def test_cudagraph_trees_give_the_same_result(tmp_path: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "cudagraph_trees.py")]
    assert ended([*RUN, *program], tmp_path) == ended(program, tmp_path)


def test_graphs_of_xla_with_large_copies_run_while_records_are_flushed(tmp_path: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "ring_of_states.py")]
    plain = ended(program, tmp_path)
    assert plain[0] == 0
    assert ended([*RUN, "--flush-interval", "20", *program], tmp_path) == plain


@pytest.mark.skipif("BRAGG_CUPTI_DIR" not in os.environ, reason="set BRAGG_CUPTI_DIR to a CUPTI of 13.3 or newer")
@pytest.mark.parametrize("shared", ["1", "0"])
def test_three_tools_have_a_shared_cupti(shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without version 2 the others are refused with 39, and bragg has its records all the same."""
    directory = os.environ["BRAGG_CUPTI_DIR"]
    monkeypatch.setenv("LD_LIBRARY_PATH", directory)
    monkeypatch.setenv("LD_PRELOAD", f"{directory}/libcupti.so.13")
    monkeypatch.setenv("BRAGG_CUPTI_SHARED", shared)
    code, lines = ended([*RUN, sys.executable, str(PROGRAMS / "shared_cupti.py")], tmp_path)
    assert lines[0] == ("[0, 0]" if shared == "1" else "[39, 39]"), (code, lines)
    meta = bragg.load(tmp_path / "run.bragg").meta
    assert meta["statistics"]["kernels"] >= 20_001
    if shared == "1":
        assert (code, lines[1]) == (0, "[20000, 20000]")
        assert meta["cuda"]["subscription"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_kernel_that_does_not_end_keeps_no_signal_from_the_program(number: signal.Signals, tmp_path: Path) -> None:
    command = [*RUN, sys.executable, str(PROGRAMS / "endless_kernel.py")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "launched\n"
        time.sleep(1)
        start = time.monotonic()
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        for child in map(int, children):
            os.kill(child, number)
        parent.wait(30)
    assert time.monotonic() - start < 5
    statistics = bragg.load(tmp_path / "run.bragg").meta["statistics"]
    assert statistics["missing_records"] + statistics["bad_timestamps"] == 1


def test_no_launch_of_96_threads_waits_for_the_recorder(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or pytest.skip("no C++ compiler")
    subprocess.run(
        [compiler, "-std=c++20", "-O2", PROGRAMS / "many_threads.cpp", "-o", "threads", "-ldl", "-lpthread"],
        cwd=tmp_path,
        check=True,
    )
    without = [ended(["./threads"], tmp_path) for _ in range(2)]
    assert [code for code, _ in without] == [0, 0]
    recorded = ended([*RUN, "--", "./threads"], tmp_path)
    assert recorded[0] == 0, recorded
    assert recorded[1][0] == without[0][1][0] == "launches 480000"
    worst_ms = float(recorded[1][1].split()[1])
    print(recorded[1][1], "without:", [lines[1] for _, lines in without])
    assert worst_ms < max(2.0, 2 * max(float(lines[1].split()[1]) for _, lines in without))
    meta = bragg.load(tmp_path / "run.bragg").meta
    lost = meta["statistics"]["missing_records"] + meta["cuda"]["dropped_records"]
    assert meta["statistics"]["kernels"] + lost == 480_000
