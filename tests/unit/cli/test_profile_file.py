from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from bragg.cli.profile_file import READABLE, newest_profile
from bragg.errors import UsageError


def test_named_file_is_taken_as_it_is() -> None:
    assert newest_profile(Path("anything")) == Path("anything")


def test_newest_profile_is_found(tmp_path: Path) -> None:
    for age, name in enumerate(("b.bragg", "a.bragg", "c.txt")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert newest_profile(None, tmp_path) == tmp_path / "b.bragg"


def test_directory_without_profiles_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        newest_profile(None, tmp_path)
    assert "bragg demo" in error.value.hint


def test_a_profile_may_be_named_without_its_suffix(tmp_path: Path) -> None:
    context = click.Context(click.Command("view"))
    name = str(tmp_path / "data")
    assert READABLE.convert(name, None, context) == Path(name)
    Path(f"{name}.bragg").touch()
    assert READABLE.convert(name, None, context) == Path(f"{name}.bragg")
    Path(name).mkdir()
    assert READABLE.convert(name, None, context) == Path(name)
