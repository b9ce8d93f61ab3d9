"""The lines above a view."""

from __future__ import annotations

import pytest

from bragg import formats
from bragg.views.terminal.header import header_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from tests.support.recordings import SAMPLE


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_all_that_is_said_of_a_run(width: int) -> None:
    lines = header_lines(RunFacts.of(formats.load(SAMPLE)), "sample.bragg", Style(width=width))
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines[1:]).split())
    assert "· backend cuda · complete, estimated overhead 1.2 % without instruction samples" in said
    assert "…" not in said
