"""The target of a run, as the command of a child process."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bragg.errors import UsageError
from bragg.model.meta.command_line import program_of

_PYTHON_SUFFIXES = {".py", ".pyc", ".pyz", ".pyw"}
_NOTEBOOK = ".ipynb"
_SHELL = ".sh"
_MAX_FIRST_LINE = 256  # more of it no system reads
_PROFILES = (".bragg", ".part")
_PYTEST = ("pytest", "py.test")


@dataclass(frozen=True)
class Target:
    """A program to run.

    Attributes:
        command: Program and arguments.
        stem: Short name of the program, for the profile's name.
    """

    command: tuple[str, ...]
    stem: str


def find_target(arguments: Sequence[str]) -> Target:
    """Tell a script, a module, pytest and any other command apart.

    Args:
        arguments: `script.py …`, `-m module …`, `pytest …`, `command …`, or `-- command …` which is taken as it is.

    Raises:
        UsageError: There is no such target.
    """
    if not arguments:
        raise UsageError("nothing to run", hint="Give a script: bragg run train.py")
    first, *rest = arguments
    if first == "--":
        return _command(rest)
    if first == "-m":
        return _module(rest)
    if first in _PYTEST:
        return _module(["pytest", *rest])
    if Path(first).suffix == _NOTEBOOK and Path(first).is_file():
        raise UsageError(
            f"{first} is a notebook, which Python does not run",
            hint=f"jupyter nbconvert --to script {shlex.quote(first)}; or record a cell: %load_ext bragg, %%bragg",
        )
    if Path(first).suffix in _PROFILES and Path(first).is_file():
        raise UsageError(f"{first} is a profile, not a program", hint=f"bragg view {shlex.quote(first)}")
    if _is_python(Path(first)):
        return Target((sys.executable, *arguments), Path(first).stem)
    return _command(arguments)


def _module(arguments: Sequence[str]) -> Target:
    if not arguments:
        raise UsageError("-m needs the name of a module", hint="For example: bragg run -m package.module")
    return Target((sys.executable, "-m", *arguments), arguments[0])


def _is_python(path: Path) -> bool:
    """Python runs a source or archive, a directory with a main module, and any text that is not a program itself."""
    if path.is_dir():
        return (path / "__main__.py").is_file()
    if not path.is_file():
        return False
    return path.suffix in _PYTHON_SUFFIXES or not (
        path.suffix == _SHELL or os.access(path, os.X_OK) or _names_another_program(path)
    )


def _names_another_program(path: Path) -> bool:
    """Whether the first line says what runs a text, and that is not Python."""
    try:
        with path.open("rb") as file:
            first = file.readline(_MAX_FIRST_LINE)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" not in first


def _command(arguments: Sequence[str]) -> Target:
    if not arguments:
        raise UsageError("there is no command after --")
    if shutil.which(arguments[0]) is None:
        path = Path(arguments[0])
        raise UsageError(
            f"cannot run {path}: {_why_not(path)}", hint=_how_to_run(path) if path.exists() else _near_miss(path)
        )
    return Target(tuple(arguments), _stem(arguments))


def _stem(arguments: Sequence[str]) -> str:
    """What a Python of the command line runs, else the command."""
    command, program = Path(arguments[0]), program_of(arguments)
    if program in ("", command.name):
        return command.stem
    return Path(program).stem if Path(program).suffix in _PYTHON_SUFFIXES else program


def _why_not(path: Path) -> str:
    if path.is_dir():
        return "it is a directory without __main__.py"
    return "it is not executable" if path.exists() else "no such file or command"


def _how_to_run(path: Path) -> str:
    """For a program that exists."""
    name = shlex.quote(str(path))
    if path.suffix == _SHELL and not _names_another_program(path):
        return f"bragg run -- bash {name}"
    return f"chmod +x {name}" if path.is_file() else ""


def _near_miss(path: Path) -> str:
    """A file beside the missing one whose name is close to it."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix in {path.suffix, ".py"}]
    except OSError:
        return f"There is no directory {path.parent}"
    near = [f"{path.name}.py"] if f"{path.name}.py" in names else difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean {path.with_name(near[0])}?" if near else "Check the path; a module is run with -m"
