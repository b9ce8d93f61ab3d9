from __future__ import annotations

import io

import pytest

from bragg.cli.console import error_lines, stream_style


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    return Terminal(io.BytesIO(), encoding="utf-8")


def test_terminal_has_colour_and_a_width(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    style = stream_style(terminal)
    assert style.colour
    assert style.width is not None


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_left_out_when_it_is_not_wanted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert not stream_style(terminal).colour


def test_file_has_neither_colour_nor_width() -> None:
    style = stream_style(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert (style.colour, style.width, style.unicode) == (False, None, False)


def test_error_is_one_line_and_so_is_its_hint() -> None:
    assert error_lines("first\nsecond", "do\n this") == ["error: first second", "hint: do this"]
    assert error_lines("alone", "") == ["error: alone"]
