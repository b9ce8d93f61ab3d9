"""Programs with a `bragg` of their own get theirs, and are recorded all the same."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from bragg.model import FrameKind
from tests.support.runs import Recorder, names_of

WORK = """
import time
def work():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        sum(range(100))
"""
USE = f"""{WORK}
import sys, bragg
from bragg.errors import OwnError
if __name__ == "__main__":
    work()
    print(bragg.helper(), OwnError.__module__, "bragg.record" in sys.modules)
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """In a folder with a package `bragg` that is not a profiler."""
    package = tmp_path / "program" / "bragg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def helper(): return 5\n")
    (package / "errors.py").write_text("class OwnError(Exception): pass\n")
    return Recorder(tmp_path / "program")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that finds the folders of a program first: with an editable install this one would not."""
    environment = tmp_path_factory.mktemp("venv")
    venv.create(environment, symlinks=True)
    return str(environment / "bin" / "python")


def test_script_gets_the_package_beside_it(recorder: Recorder, python: str, capfd: pytest.CaptureFixture[str]) -> None:
    run = recorder.run("--", python, "-u", "-W", "ignore", recorder.script(USE), "argument")
    assert capfd.readouterr().out == "5 bragg.errors False\n"
    assert run.result.exit_code == 0
    assert "work" in names_of(run.main, FrameKind.PYTHON)


@pytest.mark.parametrize("options", [("-m", "main"), ("-c", USE), ("-uc", USE)])
def test_modules_and_commands_get_the_package_where_they_run(
    recorder: Recorder, python: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.script(USE, "main.py")
    monkeypatch.chdir(recorder.directory)
    run = recorder.run("--", python, *options)
    assert run.result.exit_code == 0
    assert "work" in names_of(run.main, FrameKind.PYTHON)


def test_package_may_be_on_the_path(recorder: Recorder, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = recorder.directory.parent / "elsewhere.py"
    elsewhere.write_text(USE)
    monkeypatch.setenv("PYTHONPATH", str(recorder.directory))
    assert recorder.run("--", python, str(elsewhere)).result.exit_code == 0


def test_processes_that_are_spawned_get_it_too(recorder: Recorder, python: str) -> None:
    script = recorder.script(
        USE
        + """
    import multiprocessing
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
    )
    run = recorder.run("--", python, script)
    assert run.result.exit_code == 0
    assert ["work" in names_of(profile, FrameKind.PYTHON) for profile in run.profiles.values()].count(True) == 2


def test_folder_without_a_package_is_none(recorder: Recorder, python: str) -> None:
    for file in (recorder.directory / "bragg").iterdir():
        file.unlink()
    run = recorder.run("--", python, recorder.script("import bragg\nwith bragg.scope('the profiler'): pass\n"))
    assert run.scopes() == [{"the profiler"}]
