"""What can be run, and that a program runs as it would run alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

import bragg
from bragg.model import FrameKind
from tests.support.runs import Recorder, entered, names_of

WORK = """
import bragg, time
def busy(seconds):
    end = time.thread_time() + seconds  # however many others want the core
    while time.thread_time() < end:
        pass
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def test_script_is_recorded_with_scopes_and_functions(recorder: Recorder) -> None:
    began_ns = time.perf_counter_ns()
    run = recorder.program(f"{WORK}\nwith bragg.scope('phase'):\n    busy(0.3)\n")
    lasted_ns = time.perf_counter_ns() - began_ns
    assert list(run.profiles) == ["program.bragg"]
    assert entered(run.main, "phase") == 1
    assert 0.29e9 < run.main.total("host_time") <= lasted_ns
    assert "busy" in names_of(run.main, FrameKind.PYTHON)
    assert run.main.meta["capture"]["complete"]
    assert run.main.meta["command"][1:] == [str(recorder.directory / "program.py")]


def test_program_sees_what_it_would_see_alone(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONWARNDEFAULTENCODING", "1")
    script = recorder.script(
        """
        import sys, warnings
        print(__name__, __file__, sys.argv, sys.path, sys.flags, warnings.filters)
        """
    )
    subprocess.run([sys.executable, script, "a", "-m"], check=True)
    alone = capfd.readouterr()
    run = recorder.run(script, "a", "-m")
    assert capfd.readouterr() == alone
    assert run.result.exit_code == 0


@pytest.mark.parametrize("streams", ["", "<&- >&- 2>&-", "2>&-"])
def test_files_of_a_program_have_the_numbers_that_they_have_alone(recorder: Recorder, streams: str) -> None:
    numbers = recorder.directory / "numbers"
    script = recorder.script(
        f"""
        import os, pathlib
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
        streams = [os.path.exists(f"/proc/self/fd/{{stream}}") for stream in range(3)]
        pathlib.Path({str(numbers)!r}).write_text(f"{{opened}} {{streams}}")
        """
    )
    command = ["sh", "-c", f"exec {sys.executable} {script} {streams}"]
    subprocess.run(command, check=True, close_fds=False)
    alone = numbers.read_text()
    assert recorder.run("--", *command).result.exit_code == 0
    assert numbers.read_text() == alone


def test_module_runs_as_main(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorder.directory)
    recorder.script("import bragg\nwith bragg.scope(__name__): pass\n", "pack.py")
    run = recorder.run("-m", "pack")
    assert (list(run.profiles), run.scopes()) == (["pack.bragg"], [{"__main__"}])


def test_pytest_is_recorded(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    test = recorder.script("import bragg\ndef test_it():\n    with bragg.scope('test'): pass\n", "test_it.py")
    run = recorder.run("pytest", "-q", "-p", "no:cacheprovider", test)
    assert "1 passed" in capfd.readouterr().out
    assert (run.result.exit_code, run.scopes()) == (0, [{"test"}])


def test_python_processes_of_any_command_are_recorded(recorder: Recorder) -> None:
    script = recorder.script("import bragg, sys\nwith bragg.scope(sys.argv[1]): pass\n")
    run = recorder.run("--", "sh", "-c", f"{sys.executable} {script} one; {sys.executable} {script} two")
    assert [name.partition("-p")[0] for name in run.profiles] == ["sh.bragg", "sh"]
    assert run.scopes() == [{"one"}, {"two"}]


def test_command_without_python_gives_no_profile(recorder: Recorder) -> None:
    run = recorder.run("--", "true")
    assert (run.result.exit_code, run.profiles, run.result.captures) == (0, {}, [])
    assert list(recorder.directory.iterdir()) == []


def test_next_sitecustomize_still_runs(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.script("import sys; sys.customized = __file__", "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(recorder.directory))
    run = recorder.program("import bragg, sys\nwith bragg.scope(sys.customized): pass\n")
    assert run.scopes() == [{str(recorder.directory / "sitecustomize.py")}]


def test_error_of_the_next_sitecustomize_is_told_as_python_tells_it(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder.script("raise ValueError('theirs')", "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(recorder.directory))
    run = recorder.program("import bragg\nwith bragg.scope('still here'): pass\n")
    assert capfd.readouterr().err.endswith(
        "Error in sitecustomize; set PYTHONVERBOSE for traceback:\nValueError: theirs\n"
    )
    assert run.scopes() == [{"still here"}]


def test_python_without_bragg_is_recorded_by_the_recorder_s_own(recorder: Recorder) -> None:
    environment = recorder.directory / "venv"
    venv.create(environment, symlinks=True)
    script = recorder.script("import bragg, sys\nwith bragg.scope('elsewhere'): assert 'numpy' not in sys.modules\n")
    run = recorder.run("--", str(environment / "bin" / "python"), script)
    assert (run.result.exit_code, run.scopes()) == (0, [{"elsewhere"}])


def test_failure_of_the_recorder_is_one_line_and_the_program_runs(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = recorder.script("print('inner runs')", "inner.py")
    run = recorder.program(
        f"""
        import os, subprocess, sys
        os.environ["BRAGG_OPTIONS"] = "soon"
        subprocess.run([sys.executable, {inner!r}], check=True)
        """
    )
    shown = capfd.readouterr()
    assert shown.out == "inner runs\n"
    assert shown.err.count("\n") == 1
    assert "is not recorded: Expecting value" in shown.err
    assert len(run.profiles) == 1


def test_process_that_outlives_the_run_starts_nothing(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder.program("import os; print(*map(os.environ.get, ('PYTHONPATH', 'BRAGG_CAPTURE_DIR', 'BRAGG_OPTIONS')))")
    path, captures, options = capfd.readouterr().out.split(maxsplit=2)
    assert not Path(captures).exists()
    late = {**os.environ, "PYTHONPATH": path, "BRAGG_CAPTURE_DIR": captures, "BRAGG_OPTIONS": options}
    done = subprocess.run([sys.executable, "-c", ""], env=late, check=True, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.skipif(list(Path(bragg.__file__).parent.glob("_core.*.so")) != [], reason="the core is beside the sources")
def test_python_that_the_core_was_not_built_for_runs_unrecorded_with_one_line(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    environment = recorder.directory / "venv"
    venv.create(environment, symlinks=True)
    python = str(environment / "bin" / "python")
    script = recorder.script("import importlib.util; print(importlib.util.find_spec('bragg'))")
    run = recorder.run("--", "env", "BRAGG_CORE_DIR=/nowhere", python, script)
    shown = capfd.readouterr()
    assert (run.result.exit_code, run.profiles, shown.out) == (0, {}, "None\n")
    assert shown.err.count("\n") == 1
    assert "is not recorded: bragg has no recorder for this Python" in shown.err
