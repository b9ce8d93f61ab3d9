"""The lines above a view."""

from __future__ import annotations

import pytest

from bragg import formats
from bragg.views.terminal.header import header_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN, Style
from tests.support.recordings import SAMPLE


def test_without_a_gpu_versions_stand_with_the_run_and_its_machine() -> None:
    meta = {"backend": "cpu", "host": "laptop", "python": "3.12.3", "versions": {"numpy": "2.4.6"}, "command": ["a.py"]}
    title, run = header_lines(RunFacts(meta), "a.bragg", PLAIN)
    assert title == "a.bragg: a.py"
    assert run == "laptop · backend cpu · python 3.12.3, numpy 2.4.6"


def test_a_thread_that_had_no_core_is_a_clause_unless_all_is_asked_for() -> None:
    facts = RunFacts({"backend": "cpu", "scheduled_before": [0, 0], "scheduled": [1_000_000_000, 3_000_000_000]})
    assert header_lines(facts, "a.bragg", PLAIN)[1:] == ["backend cpu · the main thread waited 3.00 s for a core"]
    assert header_lines(facts, "a.bragg", PLAIN, is_whole=True)[1:] == ["backend cpu", f"warning: {facts.starved}"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_all_that_is_said_of_a_run(width: int) -> None:
    lines = header_lines(RunFacts.of(formats.load(SAMPLE)), "sample.bragg", Style(width=width))
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines[1:]).split())
    assert "· backend cuda · complete, estimated overhead 0.6 % without instruction samples" in said
    assert "…" not in said
