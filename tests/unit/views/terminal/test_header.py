"""The lines above a view."""

from __future__ import annotations

from bragg import formats
from bragg.views.terminal.header import header_lines
from bragg.views.text.style import Style
from tests.support.recordings import SAMPLE


def test_a_narrow_terminal_shows_in_two_lines_whether_a_recording_is_complete() -> None:
    lines = header_lines(formats.load(SAMPLE).meta, "sample.bragg", Style(width=60))
    assert max(map(len, lines)) <= 60
    assert any(line.startswith("  · complete") for line in lines)
