from __future__ import annotations

import pytest

from bragg.model.meta.command_line import program_of


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["/usr/bin/python3.12", "-u", "-X", "dev", "src/train.py", "--epochs"], "train.py"),
        (["python", "-m", "package.train", "x"], "package.train"),
        (["python", "-mpackage.train"], "package.train"),
        (["python", "-Bm", "package.train"], "package.train"),
        (["python", "-c", "from multiprocessing import x"], ""),
        (["python", "-uc", "print()", "other.py"], ""),
        (["python", "-cprint()", "other.py"], ""),
        (["python", "-Xm", "-W", "c", "--help-all", "train.py"], "train.py"),
        (["python", "-", "train.py"], "python"),
        (["/opt/solver", "input"], "solver"),
        ([], ""),
    ],
)
def test_program_is_the_script_or_module(command: list[str], program: str) -> None:
    assert program_of(command) == program
