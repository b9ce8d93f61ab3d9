from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bragg.errors import UsageError
from bragg.record.launcher.target import find_target


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_script_runs_in_this_python(here: Path) -> None:
    (here / "train.py").touch()
    target = find_target(["train.py", "-m", "x"])
    assert (target.command, target.stem) == ((sys.executable, "train.py", "-m", "x"), "train")


def test_directory_with_a_main_module_is_a_script(here: Path) -> None:
    (here / "app").mkdir()
    (here / "app" / "__main__.py").touch()
    assert find_target(["app"]).command == (sys.executable, "app")


def test_text_without_suffix_is_a_script_unless_it_is_executable(here: Path) -> None:
    tool = here / "tool"
    tool.write_text("print()\n")
    assert find_target(["./tool"]).command == (sys.executable, "./tool")
    tool.chmod(0o755)
    assert find_target(["./tool"]).command == ("./tool",)


@pytest.mark.parametrize(
    ("arguments", "stem"),
    [
        (["python", "train.py", "--lr", "1"], "train"),
        ([sys.executable, "-u", "-X", "dev", "src/train.py"], "train"),
        (["python3", "-m", "package.module"], "package.module"),
        (["python3", "-Wignore", "-m", "pytest"], "pytest"),
        (["python3", "-uc", "import time\nprint('a/b.c')", "other.py"], "python3"),
        (["python3"], "python3"),
        (["env", "train.py"], "env"),
    ],
)
def test_what_a_python_of_the_command_line_runs_names_the_profile(arguments: list[str], stem: str) -> None:
    for given in (arguments, ["--", *arguments]):
        found = find_target(given)
        assert (list(found.command), found.stem) == (arguments, stem)


def test_a_script_named_without_its_ending_is_found(here: Path) -> None:
    (here / "s.py").touch()
    with pytest.raises(UsageError, match="cannot run s: no such file or command") as caught:
        find_target(["s"])
    assert caught.value.hint == "Did you mean s.py?"


def test_shell_script_is_not_given_to_python(here: Path) -> None:
    (here / "job.sh").write_text("python train.py\n")
    with pytest.raises(UsageError, match=r"cannot run job\.sh: it is not executable") as caught:
        find_target(["job.sh"])
    assert caught.value.hint == "bragg run -- bash job.sh"


def test_module_and_pytest_run_as_modules() -> None:
    assert find_target(["-m", "pkg.mod", "-v"]).command == (sys.executable, "-m", "pkg.mod", "-v")
    assert find_target(["pytest", "-q"]).command == (sys.executable, "-m", "pytest", "-q")
    assert find_target(["-m", "pkg.mod"]).stem == "pkg.mod"


def test_command_after_dashes_is_taken_as_it_is(here: Path) -> None:
    (here / "sh").touch()
    assert find_target(["--", "sh", "-c", "true"]).command == ("sh", "-c", "true")


def test_command_on_the_path_needs_no_dashes() -> None:
    assert find_target(["env", "X=1", "true"]).command == ("env", "X=1", "true")


def test_misspelt_script_is_a_usage_error_with_its_neighbour(here: Path) -> None:
    (here / "train_mlp.py").touch()
    with pytest.raises(UsageError, match=r"cannot run trian_mlp\.py: no such file") as caught:
        find_target(["trian_mlp.py"])
    assert caught.value.hint == "Did you mean train_mlp.py?"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to run"),
        (["--"], "no command after --"),
        (["-m"], "-m needs the name"),
        (["nowhere/x.py"], "no such file"),
        (["."], "directory without __main__"),
    ],
)
def test_missing_target_is_a_usage_error(here: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_target(arguments)
