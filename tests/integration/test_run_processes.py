"""Every Python process of a run is recorded, each into a profile of its own."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bragg.record import captures
from tests.support.runs import Recorder

_LONG_S = 60  # for what takes much less, also on a machine that is busy


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.mark.parametrize("leave", ["sys.exit", "os._exit"])
def test_forked_child_records_its_own_work_and_not_its_parent_s(
    recorder: Recorder, capfd: pytest.CaptureFixture[str], leave: str
) -> None:
    run = recorder.program(
        f"""
        import bragg, os, sys
        with bragg.scope("before"): pass
        child = os.fork()
        with bragg.scope("parent" if child else "child"): pass
        if child:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        {leave}(3)
        """
    )
    assert (run.result.exit_code, capfd.readouterr().err) == (3, "")
    assert run.scopes()[0] >= {"before", "parent"}
    assert "child" in run.scopes()[1]
    assert [profile.own("host_count").sum() for profile in run.profiles.values()] == [2, 1]
    assert all(profile.meta["capture"]["complete"] for profile in run.profiles.values())
    assert {profile.meta["pid"] for profile in run.profiles.values()} == {
        int(path.stem.partition("-")[0]) for path in run.result.captures
    }


@pytest.mark.parametrize("context", ["python", "shadow"])
def test_child_that_a_thread_has_forked_ends_with_that_thread(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], context: str
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")  # Python warns of the fork beside the program's main thread
    run = recorder.program(
        f"""
        import bragg, os, sys, threading
        def work():
            child = os.fork()
            if not child:
                with bragg.scope("child"): pass
                sys.exit()
            killing = threading.Timer({_LONG_S}, os.kill, [child, 9])
            killing.start()
            ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            killing.cancel()
        ended = []
        with bragg.scope("main"): pass
        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        sys.exit(f"{{ended}}")
        """,
        context=context,
    )
    assert (run.result.exit_code, capfd.readouterr().err) == (1, "[0, 0]\n")
    assert run.scopes()[1:] == [{"child"}, {"child"}]
    assert all(profile.meta["capture"]["complete"] for profile in run.profiles.values())


def test_child_waits_for_no_lock_that_a_thread_of_its_parent_has(recorder: Recorder) -> None:
    run = recorder.program(
        f"""
        import bragg, os, sys, threading
        from bragg.record.inside.regions import REGIONS
        with REGIONS._lock:  # as another thread may
            child = os.fork()
        if not child: os._exit(0)
        killing = threading.Timer({_LONG_S}, os.kill, [child, 9])
        killing.start()
        status = os.waitpid(child, 0)[1]
        killing.cancel()
        sys.exit(os.waitstatus_to_exitcode(status))
        """,
        sample_interval_us=0,
    )
    assert run.result.exit_code == 0


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_of_multiprocessing_are_recorded_to_their_end(recorder: Recorder, method: str) -> None:
    run = recorder.program(
        """
        import bragg, multiprocessing, sys

        def work(number):
            with bragg.scope(f"work {number}"): pass

        if __name__ == "__main__":
            workers = [multiprocessing.get_context(sys.argv[1]).Process(target=work, args=[i]) for i in range(2)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            with bragg.scope("main"): pass
            sys.exit(sum(worker.exitcode for worker in workers))
        """,
        method,
        sample_interval_us=0,
    )
    assert run.result.exit_code == 0
    assert run.scopes()[0] == {"main"}
    assert sorted(name for scopes in run.scopes()[1:] for name in scopes if name.startswith("work")) == [
        "work 0",
        "work 1",
    ]
    assert all(profile.meta["capture"]["complete"] for profile in run.profiles.values())


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_terminated_workers_of_a_pool_are_recorded(recorder: Recorder, method: str) -> None:
    run = recorder.program(
        """
        import bragg, multiprocessing, sys

        def work(number):
            with bragg.scope("work"): return number

        if __name__ == "__main__":
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                pool.map(work, range(8))
        """,
        method,
        sample_interval_us=0,
    )
    assert run.result.exit_code == 0
    assert sum(int(profile.own("host_count").sum()) for profile in run.profiles.values()) == 8


def test_program_that_a_process_becomes_gets_the_plain_name(recorder: Recorder) -> None:
    after = recorder.script("import bragg\nwith bragg.scope('after'): pass\n", "after.py")
    run = recorder.program(
        f"""
        import bragg, os, sys
        with bragg.scope("before"): pass
        try: os.execvp("no such program", ["no such program"])
        except FileNotFoundError: pass
        with bragg.scope("before"): pass
        os.execv(sys.executable, [sys.executable, {after!r}])
        """
    )
    assert run.scopes() == [{"after"}, {"before"}]
    assert [int(profile.own("host_count").sum()) for profile in run.profiles.values()] == [1, 2]
    assert next(iter(run.profiles)) == "program.bragg"


def test_subinterpreters_leave_the_recording_of_the_main_one_alone(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run = recorder.program(
        """
        import sys, bragg
        if sys.version_info >= (3, 13): import _interpreters as interpreters
        else: import _xxsubinterpreters as interpreters
        def work():
            with bragg.scope("work"): pass
        work()
        others = [interpreters.create() for _ in range(3)]
        enter = "try: import bragg; bragg.scope('other')"
        interpreters.run_string(others[0], enter + "\\nexcept Exception as error: print(error)")
        work()
        for other in others: interpreters.destroy(other)
        """,
        sample_interval_us=0,
    )
    talk = capfd.readouterr()
    assert talk.out == "only the main interpreter of a process is recorded\n"
    assert talk.err.count(talk.out) == talk.err.count("\n") == 1
    assert talk.err.startswith("bragg: a sub-interpreter of process ")
    assert [int(profile.own("host_count").sum()) for profile in run.profiles.values()] == [2]
    assert run.main.meta["capture"]["complete"]


def test_subinterpreter_of_a_thread_ends_on_another_one(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    """Before 3.13 its end waits for the thread that made it, for ever, if `threading` was imported in it."""
    run = recorder.program(
        """
        import faulthandler, sys, threading
        if sys.version_info >= (3, 13): import _interpreters as interpreters
        else: import _xxsubinterpreters as interpreters
        faulthandler.dump_traceback_later(60, exit=True)
        made = []
        thread = threading.Thread(target=lambda: made.append(interpreters.create()))
        thread.start()
        thread.join()
        interpreters.run_string(made[0], "import sys; print('threading' in sys.modules)")
        interpreters.destroy(made[0])
        """
    )
    assert (run.result.exit_code, capfd.readouterr().out) == (0, "False\n")


@pytest.mark.parametrize("beside", ["", "thread.start()"])
def test_python_warns_of_a_fork_beside_threads_of_the_program_alone(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], beside: str
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "always::DeprecationWarning")
    script = recorder.script(
        f"""
        import os, threading
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        {beside}
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
        stop.set()
        """
    )
    subprocess.run([sys.executable, script], check=True)
    alone = capfd.readouterr().err
    recorder.run(script)
    recorded = capfd.readouterr().err
    assert re.sub(r"pid=\d+", "", recorded) == re.sub(r"pid=\d+", "", alone)


def test_process_left_behind_is_waited_for(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "STRAGGLER_WAIT_S", 60.0)
    run = recorder.program(
        """
        import bragg, os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.4)
            with bragg.scope("late"): pass
        """,
        sample_interval_us=0,
    )
    assert run.scopes() == [{"late"}]
    assert (run.empty, run.result.notes) == (1, [])


def test_helper_processes_of_multiprocessing_make_no_profile(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import multiprocessing, time
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=[0.1])
            process.start()
            process.join()
        """
    )
    commands = [" ".join(profile.meta["command"]) for profile in run.profiles.values()]
    assert not any("resource_tracker" in command for command in commands)
    assert any("spawn_main" in command for command in commands)
