"""`bragg run --rotate`: a profile for each stretch of time, written while the program goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import bragg
from bragg.errors import BraggError
from bragg.record.captures import phase_of
from tests.support import fake_cuda
from tests.support.native_program import build_native_program
from tests.support.runs import Recorder, entered

# A process sees its captures where the run collects them, and no longer those whose profiles are written.
STEPS = """
import bragg, glob, os, time
def phase():
    parts = glob.glob(f"{os.environ['BRAGG_CAPTURE_DIR']}/{os.getpid()}.part_*.part")
    return max((int(path.split("_")[-1].removesuffix(".part")) for path in parts), default=0)
def steps(phases):
    count, last = 0, phase() + phases
    while count % 10 or phase() < last:
        with bragg.scope("step"): time.sleep(0.002)
        count += 1
    return count
"""


def files(directory: Path) -> dict[int, Path]:
    """The profiles of the main process, by phase."""
    paths = directory.glob("program.part_*.bragg")
    return dict(sorted((int(path.name.split("_")[1].removesuffix(".bragg")), path) for path in paths))


def phases(directory: Path) -> dict[int, bragg.Profile]:
    return {number: bragg.load(path) for number, path in files(directory).items()}


def flushed_phase(directory: Path) -> int:
    """The latest phase with steps in its capture; 0 if there is none."""
    for capture in sorted(directory.glob(".bragg-*/*.part"), key=phase_of, reverse=True):
        with suppress(BraggError):  # It is empty, or was written meanwhile.
            if entered(bragg.load(capture), "step"):
                return phase_of(capture)
    return 0


def test_phases_of_a_run_add_up_to_it(tmp_path: Path) -> None:
    count = tmp_path / "count"
    Recorder(tmp_path).program(
        STEPS + f"with bragg.scope('whole'): open({str(count)!r}, 'w').write(str(steps(4)))",
        rotate_s=0.2,
        context="shadow",
    )
    found = phases(tmp_path)
    assert max(found) >= 4
    assert sum(entered(profile, "step") for profile in found.values()) == int(count.read_text())
    assert [number for number, profile in found.items() if entered(profile, "whole")] == [max(found)]
    assert all(profile.meta.get("phase", 0) == number for number, profile in found.items())
    assert all(profile.meta["capture"]["complete"] for profile in found.values())
    starts = [profile.meta["started_ns"] for profile in found.values()]
    stops = [profile.meta["stopped_ns"] for profile in found.values()]
    assert all(start < stop for start, stop in zip(starts, stops, strict=True))
    assert all(stop <= start for stop, start in zip(stops, starts[1:], strict=False))


def test_profiles_are_there_while_the_program_runs_and_survive_its_kill(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(STEPS + "open('pid', 'w').write(str(os.getpid()))\nsteps(9999)\n")
    flags = ["--backend=cpu", "--context=shadow", "--rotate=300ms", "--keep=2", "--flush-interval=50"]
    argv = [sys.executable, "-m", "bragg", "run", *flags, str(script)]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        try:
            until = time.monotonic() + 60
            while max(files(tmp_path), default=0) < 4 or flushed_phase(tmp_path) < 5:
                assert time.monotonic() < until
                time.sleep(0.05)
            seen = bragg.load(max(files(tmp_path).items())[1])
        finally:
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
            _, talk = run.communicate()
    assert run.returncode == -signal.SIGKILL
    assert entered(seen, "step") > 0
    assert len(phases(tmp_path)) == 2
    assert max(phases(tmp_path)) > 4
    assert "and 1 more profile" in talk
    assert not list(tmp_path.glob(".bragg-*"))


def test_a_phase_says_no_time_of_the_main_thread_that_is_of_the_whole_run(tmp_path: Path) -> None:
    Recorder(tmp_path).program(STEPS + "steps(2)", rotate_s=0.2, context="shadow")
    found = phases(tmp_path)
    assert max(found) >= 2
    assert [profile.run.main_thread_ns for number, profile in found.items() if number] == [None] * max(found)
    assert all(profile.run.taken_ns is None for number, profile in found.items() if number)


def test_forked_process_rotates_on_its_own(tmp_path: Path) -> None:
    run = Recorder(tmp_path).program(
        STEPS + "pid = os.fork()\nsteps(2)\nif pid: os.waitpid(pid, 0)", rotate_s=0.2, rotate_keep=9, context="shadow"
    )
    assert len(run.profiles) == 2
    assert len(list(tmp_path.glob("program.part_*.bragg"))) >= 2
    assert len(list(tmp_path.glob("program-p*.part_*.bragg"))) >= 2


def test_program_without_python_rotates_too(tmp_path: Path, fakes_directory: Path) -> None:
    program = build_native_program(
        tmp_path,
        fakes_directory,
        """
        char captures[4096];
        snprintf(captures, sizeof captures, "%s/*.part_[2-9].part", getenv("BRAGG_CAPTURE_DIR"));
        glob_t found;
        int count = 0;
        for (; count < 10000 && (count % 10 || glob(captures, 0, NULL, &found)); ++count, usleep(5000)) launch();
        printf("%d\\n", count);
        return cuCtxSynchronize();
        """,
    )
    environ = {**os.environ, **fake_cuda.environment(fakes_directory, {"CLOCK": "real"})}
    flags = ["--backend=cuda", "--rotate=150ms"]
    argv = [sys.executable, "-m", "bragg", "run", *flags, "--", program]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = phases(tmp_path)
    assert len(found) >= 2
    assert sum(int(profile.own("gpu_count").sum()) for profile in found.values()) == int(done.stdout)
