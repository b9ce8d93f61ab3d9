"""Lines on the stderr of a program that may have done anything to it."""

from __future__ import annotations

import io
import sys

import pytest

from bragg.record.inside.notes import note, once


class Refusing(io.StringIO):
    def write(self, text: str) -> int:
        raise RuntimeError(text)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [None, closed(), Refusing()])
def test_stderr_that_takes_nothing_is_no_error_of_the_program(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    note("text")


def test_what_is_said_once_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say = once("two\n  lines")
    say()
    say()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(": two lines")
