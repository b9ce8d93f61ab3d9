"""Recordings that a program makes of itself. Each runs in this process, on the CPU."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from pathlib import Path
from textwrap import dedent

import pytest

import bragg
from bragg.errors import BackendUnavailable, NothingRecorded, RecordingFailed, UsageError
from bragg.record.backends import cuda
from tests.support.runs import FLUSHED, entered

pytestmark = pytest.mark.usefixtures("here")


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False)


def test_block_is_recorded(here: Path) -> None:
    with bragg.profile("block", backend="cpu") as session:
        assert session.active
        with bragg.scope("inside"):
            pass
    with bragg.scope("outside"):
        pass
    assert session.path is not None
    assert not session.active
    assert session.path == here / "block.bragg"
    assert entered(session.profile(), "inside") == entered(bragg.load(session.path), "inside") == 1
    assert entered(session.profile(), "outside") == 0
    assert names(here) == {"block.bragg"}


def test_scopes_end_in_any_order_and_close_no_others() -> None:
    program = """
        import bragg
        from threading import Thread

        def generator():
            with bragg.scope("generator"):
                yield

        def leave(scope):
            with bragg.scope("thread"):
                scope.__exit__(None, None, None)
                with bragg.scope("in thread"):
                    pass

        with bragg.profile("order", backend="cpu", context="shadow") as session:
            late = generator()
            next(late)
            with bragg.scope("outer"):
                late.close()
                with bragg.scope("in outer"):
                    pass
            lent = bragg.scope("lent")
            lent.__enter__()
            thread = Thread(target=leave, args=[lent])
            thread.start()
            thread.join()
        tree = session.profile().tree
        print({tree.label(node): tree.label(tree.parent[node]) for node in range(1, len(tree))})
    """
    below = {"generator": "ROOT", "outer": "generator", "in outer": "outer", "thread": "ROOT", "in thread": "thread"}
    assert literal_eval(python(program).stdout) == below


def test_each_call_of_a_decorated_function_is_recorded(here: Path) -> None:
    @bragg.profile("call", backend="cpu")
    def work(number: int) -> int:
        with bragg.scope("work"):
            return number + 1

    assert [work(1), work(2)] == [2, 3]
    assert names(here) == {"call.bragg", "call-2.bragg"}
    assert work.__name__ == "work"


def test_function_decorated_without_arguments_gives_the_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ())

    @bragg.profile
    def work() -> None:
        with bragg.scope("work"):
            pass

    work()
    assert names(here) == {"work.bragg"}


def test_start_and_stop_record_what_is_between(here: Path) -> None:
    session = bragg.start("between", backend="cpu")
    with bragg.scope("between"):
        pass
    profile = bragg.stop()
    assert entered(profile, "between") == 1
    assert session.profile() is profile
    assert profile.meta["backend"] == "cpu"


def test_what_runs_while_deactivated_is_not_recorded() -> None:
    bragg.start("pauses", backend="cpu")
    bragg.deactivate()
    with bragg.scope("pause"):
        pass
    bragg.activate()
    with bragg.scope("work"):
        pass
    profile = bragg.stop()
    assert (entered(profile, "pause"), entered(profile, "work")) == (0, 1)


def test_sessions_record_side_by_side(here: Path) -> None:
    outer = bragg.start("outer", backend="cpu")
    with bragg.scope("first"):
        pass
    with bragg.profile("inner", backend="cpu", data="trace") as inner, bragg.scope("both"):
        pass
    profile = bragg.stop(outer)
    assert [entered(inner.profile(), name) for name in ("first", "both")] == [0, 1]
    assert [entered(profile, name) for name in ("first", "both")] == [1, 1]
    assert names(here) == {"inner.bragg", "outer.bragg"}


def test_exception_of_the_block_wins_and_the_profile_is_written(here: Path) -> None:
    with pytest.raises(ZeroDivisionError), bragg.profile("fails", backend="cpu"), bragg.scope("fails"):
        _ = 1 // 0
    assert entered(bragg.load(here / "fails.bragg"), "fails") == 1


def test_exception_of_the_block_wins_over_a_failure_to_write(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), bragg.profile("empty", backend="cpu", sample_interval_us=0):
        _ = 1 // 0
    assert "bragg: process" in capfd.readouterr().err


def test_nothing_recorded_is_an_error_and_leaves_no_file(here: Path) -> None:
    bragg.start("empty", backend="cpu", sample_interval_us=0)
    with pytest.raises(NothingRecorded):
        bragg.stop()
    assert names(here) == set()


def test_stopping_nothing_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no recording was started"):
        bragg.stop()


def test_unwritable_place_is_told_at_the_start(here: Path) -> None:
    (here / "file").touch()
    with pytest.raises(RecordingFailed, match="cannot write to"):
        bragg.start("file/x", backend="cpu")


def test_missing_gpu_is_told_at_the_start(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ())
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    with pytest.raises(BackendUnavailable, match="no NVIDIA GPU"):
        bragg.start("gpu", backend="cuda")
    assert names(here) == set()


def test_other_tool_that_holds_a_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTEL_LIBITTNOTIFY64", "/other.so")
    with pytest.warns(RuntimeWarning, match=r"INTEL_LIBITTNOTIFY64 belongs to /other\.so") as caught:
        bragg.start("held", backend="cpu")
    assert caught[0].filename == __file__
    with bragg.scope("held"):
        pass
    bragg.stop()


def test_pytorch_that_cannot_be_observed_and_was_imported_before_the_start_is_told() -> None:
    program = """
        import sys, types, warnings
        sys.modules["torch"] = types.SimpleNamespace(__spec__=None, __version__="9", autograd=None, __file__="t.py")
        import bragg
        warnings.simplefilter("error")
        bragg.start("late", backend="cpu")
    """
    assert "RuntimeWarning: PyTorch was imported before the recording started" in python(program).stderr


def test_session_left_running_is_finished_at_exit(here: Path) -> None:
    done = python(
        """
        import bragg
        bragg.start("left", backend="cpu")
        with bragg.scope("work"): pass
        raise SystemExit(4)
        """
    )
    assert (done.returncode, done.stderr) == (4, "")
    assert entered(bragg.load(here / "left.bragg"), "work") == 1


def test_killed_program_leaves_a_capture_that_can_be_read(here: Path) -> None:
    python(
        FLUSHED
        + dedent(
            """
            import bragg, os
            bragg.start("killed", backend="cpu", flush_interval_ms=20)
            with bragg.scope("work"): pass
            wait_until_flushed("work")
            os.kill(os.getpid(), 9)
            """
        )
    )
    assert names(here) == {"killed.bragg.part"}
    assert entered(bragg.load(here / "killed.bragg.part"), "work") == 1


def test_forked_child_leaves_its_parent_s_session_alone(here: Path) -> None:
    done = python(
        """
        import bragg, os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Of a fork beside threads.
        with bragg.profile("parent", backend="cpu"):
            child = os.fork()
            with bragg.scope("parent" if child else "child"): pass
            if not child: sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    profile = bragg.load(here / "parent.bragg")
    assert (entered(profile, "parent"), entered(profile, "child")) == (1, 0)
    assert names(here) == {"parent.bragg"}


def test_session_of_a_child_that_a_thread_has_forked_ends_with_that_thread(here: Path) -> None:
    done = python(
        """
        import bragg, os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Of a fork beside threads.
        start = bragg.start  # What this imports has threads of its own, which a child that imports it would keep.
        def work():
            child = os.fork()
            if not child:
                start("child", backend="cpu")
                with bragg.scope("child"): pass
                sys.exit()
            killing = threading.Timer(30, os.kill, [child, 9])
            killing.start()
            ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            killing.cancel()
        ended = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        sys.exit(ended[0])
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert entered(bragg.load(here / "child.bragg"), "child") == 1
    assert names(here) == {"child.bragg"}


def test_program_under_bragg_run_can_pause_its_recording(tmp_path: Path) -> None:
    from tests.support.runs import Recorder

    run = Recorder(tmp_path).program(
        """
        import bragg
        bragg.deactivate()
        with bragg.scope("warm-up"): pass
        bragg.activate()
        with bragg.scope("work"): pass
        """
    )
    assert (entered(run.main, "warm-up"), entered(run.main, "work")) == (0, 1)
