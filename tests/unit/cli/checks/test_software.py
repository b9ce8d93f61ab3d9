from __future__ import annotations

from pathlib import Path

import pytest

from bragg.cli.checks import software
from bragg.cli.checks.check import State, Surroundings

HERE = Surroundings(environ={})


def test_this_interpreter_is_supported() -> None:
    assert software.check_python(HERE).state is State.OK


def test_newer_interpreter_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_NEWEST_PYTHON", (3, 9))
    assert software.check_python(HERE).state is State.NOTE


def test_other_implementation_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software.platform, "python_implementation", lambda: "PyPy")
    assert software.check_python(HERE).state is State.BLOCKED


def test_other_c_library_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software.platform, "libc_ver", lambda: ("", ""))
    assert software.check_libc(HERE).state is State.NOTE


def test_core_is_what_the_probe_says() -> None:
    assert software.check_core(Surroundings(environ={}, probe={"core": "/x.so"})).found == "/x.so"
    assert software.check_core(Surroundings(environ={}, probe={"error": "no"})).state is State.BLOCKED


@pytest.mark.parametrize(
    ("version", "state"), [("3.9.0", State.OK), ("3.4.0+git1", State.OK), ("3.3.1", State.NOTE), ("", State.NOTE)]
)
def test_triton_is_compared_with_the_oldest_that_works(
    monkeypatch: pytest.MonkeyPatch, version: str, state: State
) -> None:
    monkeypatch.setattr(software, "_version", lambda package: version)
    assert software.check_triton(HERE).state is state


def test_absent_framework_says_what_is_missing_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "_version", lambda package: "")
    assert software.check_torch(HERE).blocks == "PyTorch operators in call paths"
    assert software.check_numpy(HERE).state is State.BLOCKED


@pytest.mark.parametrize(
    ("refusal", "state", "found"),
    [
        ("", State.OK, "2.11.0, whose operators can be observed"),
        ("it calls no observer", State.NOTE, "2.11.0, whose operators come through ITT: it calls no observer"),
    ],
)
def test_how_operators_of_pytorch_come_is_told(
    monkeypatch: pytest.MonkeyPatch, refusal: str, state: State, found: str
) -> None:
    monkeypatch.setattr(software, "_version", lambda package: "2.11.0")
    check = software.check_torch(Surroundings(environ={}, probe={"torch_operators": refusal}))
    assert (check.state, check.found) == (state, found)


def test_other_profilers_are_found_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "nsys").touch(mode=0o755)
    assert software.check_peers(Surroundings(environ={"PATH": str(tmp_path)})).found.startswith("nsys:")
    assert software.check_peers(Surroundings(environ={"PATH": ""})).found == "none installed"
