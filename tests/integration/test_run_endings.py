"""However a program ends, its profile is there and its exit status is its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.fake_gpu_runs import Record, kernels, statistics
from tests.support.runs import FLUSHED, Recorder

ENTER = "import bragg, os, signal, sys, time\nwith bragg.scope('before the end'): time.sleep(0.01)\n"


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "RuntimeError('Triton Error [CUDA]: an illegal memory access was encountered')",
            "an illegal memory access was encountered",
        ),
        (
            "OSError('lost') from RuntimeError('CUDA error: device-side assert triggered')",
            "device-side assert triggered",
        ),
        ("RuntimeError('boom')", None),
    ],
)
def test_the_error_of_a_kernel_that_ended_a_program_is_kept(recorder: Recorder, raised: str, said: str | None) -> None:
    run = recorder.program(f"{ENTER}raise {raised}")
    assert run.result.exit_code == 1
    assert run.main.meta.get("kernel_error") == said


@pytest.mark.parametrize("last", ["ring", "mock.MagicMock()"])
def test_whatever_a_program_leaves_as_its_last_error_it_ends(recorder: Recorder, last: str) -> None:
    run = recorder.program(
        f"""{ENTER}
from unittest import mock
ring, other = ValueError("one"), KeyError("other")
ring.__context__, other.__cause__ = other, ring
sys.last_value = {last}
signal.alarm(60)
"""
    )
    assert run.result.exit_code == 0
    assert "kernel_error" not in run.main.meta


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        ("sys.exit(7)", 7),
        ("os._exit(3)", 3),
        ("raise ValueError('boom')", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGHUP); time.sleep(60)",
            -signal.SIGHUP,
            marks=pytest.mark.skipif(
                signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="ignored, as under nohup"
            ),
        ),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); os.kill(os.getpid(), signal.SIGTERM)", 5),
    ],
)
def test_profile_is_complete_and_the_exit_status_the_program_s_own(
    recorder: Recorder, ending: str, exit_code: int
) -> None:
    run = recorder.program(ENTER + ending)
    assert run.result.exit_code == exit_code
    assert run.scopes() == [{"before the end"}]
    assert run.main.meta["capture"]["complete"]
    assert [path.name for path in recorder.directory.iterdir() if path.name.startswith(".")] == []


def test_sudden_end_loses_nothing_that_was_flushed(recorder: Recorder) -> None:
    ending = "wait_until_flushed('before the end'); os.kill(os.getpid(), signal.SIGKILL)"
    run = recorder.program(f"{FLUSHED}{ENTER}{ending}", flush_interval_ms=50)
    assert run.result.exit_code == -signal.SIGKILL
    assert run.scopes() == [{"before the end"}]
    assert not run.main.meta["capture"]["complete"]


def test_signal_ends_a_program_whose_main_thread_is_blocked_for_good(recorder: Recorder) -> None:
    run = recorder.program(
        ENTER
        + """
import ctypes, threading
threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGTERM]).start()
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
lock(mutex), lock(mutex)
"""
    )
    assert run.result.exit_code == -signal.SIGTERM
    assert (run.scopes(), run.main.meta["capture"]["complete"]) == ([{"before the end"}], True)


def test_program_sees_the_default_handler_and_may_replace_it(recorder: Recorder) -> None:
    run = recorder.program(
        ENTER
        + """
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
signal.signal(signal.SIGTERM, lambda *_: None)
os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
    )
    assert run.result.exit_code == -signal.SIGTERM


def test_scopes_entered_at_exit_are_recorded(recorder: Recorder) -> None:
    run = recorder.program("import atexit, bragg\n@atexit.register\ndef last():\n    with bragg.scope('last'): pass\n")
    assert run.scopes() == [{"last"}]


def test_ignored_signal_stays_ignored(recorder: Recorder) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        run = recorder.program(f"{ENTER}os.kill(os.getpid(), signal.SIGTERM)")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (run.result.exit_code, run.main.meta["capture"]["complete"]) == (0, True)


def test_threads_of_the_recorder_take_no_signal(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    recorder.program(
        """
        import os, pathlib, signal
        for task in pathlib.Path("/proc/self/task").iterdir():
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            blocked = int(status["SigBlk"], 16)
            taken = [number for number in (signal.SIGINT, signal.SIGTERM) if not blocked >> number - 1 & 1]
            print("main" if task.name == str(os.getpid()) else "recorder", len(taken))
        """
    )
    # By number: a thread has the name of the one that began it until it gives itself its own.
    assert sorted(capfd.readouterr().out.splitlines()) == ["main 2", *["recorder 0"] * 5]


def test_existing_profile_is_not_overwritten(recorder: Recorder) -> None:
    script = recorder.script(ENTER)
    assert [list(recorder.run(script).profiles) for _ in range(2)] == [["program.bragg"], ["program-2.bragg"]]


def test_rank_is_in_the_name(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "RANK", "1")
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "2")
    assert list(recorder.program(ENTER).profiles) == ["program-r1.bragg"]


@pytest.mark.parametrize(("timer", "number"), [("PROF", "SIGPROF"), ("VIRTUAL", "SIGVTALRM"), ("REAL", "SIGALRM")])
def test_timer_that_is_still_running_does_not_kill_the_program_at_its_end(
    recorder: Recorder, timer: str, number: str
) -> None:
    run = recorder.program(
        f"""
        import bragg, signal, time
        signal.signal(signal.{number}, lambda *_: None)
        signal.setitimer(signal.ITIMER_{timer}, 0.0005, 0.0005)
        with bragg.scope("timed"):
            end = time.thread_time() + 0.05
            while time.thread_time() < end: pass
        """
    )
    assert run.result.exit_code == 0
    assert run.scopes() == [{"timed"}]


def test_timer_without_a_handler_ends_the_program_as_it_does_alone(recorder: Recorder) -> None:
    run = recorder.program("import signal\nsignal.setitimer(signal.ITIMER_PROF, 0.05)\nwhile True: pass\n")
    assert run.result.exit_code == -signal.SIGPROF


END_OF_MAIN_THREAD = "import ctypes; ctypes.CDLL(None).pthread_exit(None)\n"


def test_program_whose_main_thread_ends_alone_is_over(recorder: Recorder) -> None:
    run = recorder.program(f"{ENTER}signal.alarm(60)\n{END_OF_MAIN_THREAD}", telemetry_hz=100.0)
    assert run.result.exit_code == 0  # without bragg it ends at once, with its last thread
    assert (run.scopes(), run.main.meta["capture"]["complete"]) == ([{"before the end"}], True)


def test_program_whose_main_thread_ends_first_lives_as_long_as_its_others(recorder: Recorder) -> None:
    later = """
        import threading
        def work():
            time.sleep(0.6)
            with bragg.scope('after the main thread'): pass
            ended.write_text('all of it')
        import pathlib
        ended = pathlib.Path(sys.argv[1])
        threading.Thread(target=work, daemon=True).start()
        """
    ended = recorder.directory / "ended"
    run = recorder.program(f"{ENTER}{dedent(later)}{END_OF_MAIN_THREAD}", str(ended))
    assert run.result.exit_code == 0
    assert ended.read_text() == "all of it"
    assert (run.scopes(), run.main.meta["capture"]["complete"]) == (
        [{"before the end", "after the main thread"}],
        True,
    )


def test_threads_that_launch_while_the_interpreter_ends_keep_their_call_paths(record: Record) -> None:
    run = record(
        """
        import threading
        launched = threading.Barrier(4)
        def work():
            gpu.use_device(0)
            for _ in range(100): gpu.launch("late")
            launched.wait()
            while True: gpu.launch("late")
        for _ in range(3): threading.Thread(target=work, daemon=True).start()
        launched.wait()
        """,
        context="python",
    )
    assert run.exit_code == 0
    found = kernels(run.main)
    assert sum(found.values()) >= 300
    assert [path for path in found if not path.endswith("/work/FakeCuda.launch/FakeCuda.call/late")] == []
    assert statistics(run)["unattributed_records"] == 0
