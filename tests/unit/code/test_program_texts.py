from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bragg.code import program_texts
from bragg.code.program_texts import with_program_texts
from bragg.model import Profile
from tests.support.profiles import profile_from_text

BEGAN_NS = 1_700_000_000_000_000_000


def of_files(cwd: Path, *files: str) -> Profile:
    """A profile that began later than its files were written, with a call path into each."""
    text = "\n".join(["root", *(f"  {file}:1@f{number} host=1us" for number, file in enumerate(files))])
    return replace(profile_from_text(text), meta={"cwd": str(cwd), "started_ns": BEGAN_NS})


def write(file: Path, text: str, *, age_ns: int = 1) -> None:
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(BEGAN_NS - age_ns, BEGAN_NS - age_ns))


def test_the_files_of_the_program_come_into_the_profile(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "main()\n")
    (tmp_path / "site-packages").mkdir()
    write(tmp_path / "site-packages/torch.py", "library\n")
    profile = of_files(tmp_path, "train.py", str(tmp_path / "site-packages/torch.py"), "gone.py", "<string>")
    assert with_program_texts(profile).sources == {"train.py": "main()\n"}


def test_a_file_that_was_changed_after_the_run_began_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "main()\n", age_ns=-1)
    assert with_program_texts(of_files(tmp_path, "train.py")).sources == {}


def test_long_files_and_those_without_room_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_texts, "_MAX_FILE_BYTES", 8)
    monkeypatch.setattr(program_texts, "_MAX_BYTES", 10)
    for name, text in {"a.py": "123456789", "b.py": "12345678", "c.py": "123", "d.py": "12"}.items():
        write(tmp_path / name, text)
    found = with_program_texts(of_files(tmp_path, "a.py", "b.py", "c.py", "d.py"))
    assert list(found.sources) == ["b.py", "d.py"]


def test_a_file_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xff\xfe\xfa")
    os.utime(tmp_path / "a.py", ns=(0, 0))
    assert with_program_texts(of_files(tmp_path, "a.py")).sources == {}


def test_a_text_that_the_profile_has_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "new")
    profile = replace(of_files(tmp_path, "a.py"), sources={"a.py": "as it ran"})
    assert with_program_texts(profile).sources == {"a.py": "as it ran"}
