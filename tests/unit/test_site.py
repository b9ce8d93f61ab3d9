"""The documentation's site without mkdocs: its navigation, and what of it is made from the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import bragg
from bragg.cli.verbs import VERBS
from bragg.record import RecordConfig
from bragg.registry import CHECKERS
from bragg.views.text.metric_meanings import MEANINGS
from tools import site_reference

ROOT = Path(__file__).parents[2]
RECORDED = re.compile(r'Metric\(\s*"([a-z_]+)"')


def test_navigation_leads_to_every_page_once() -> None:
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")]
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2])
    assert sorted(listed) == sorted([*pages, *site_reference.PAGES])


def test_marks_of_pages_name_what_is_made() -> None:
    used = [
        mark for page in ROOT.glob("docs/**/*.md") for mark in re.findall(r"<!-- made.*: (.*) -->", page.read_text())
    ]
    assert sorted(used) == sorted(site_reference.BLOCKS)


@pytest.mark.parametrize("verb", VERBS)
def test_commands_have_every_option_with_a_meaning(verb: str) -> None:
    section = site_reference.PAGES["reference/commands.md"]().partition(f"\n## bragg {verb}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(.+?)` \| (.*) \|$", section, re.MULTILINE))
    assert rows
    assert [option for option, meaning in rows.items() if len(meaning) < 8] == []


def test_python_page_describes_every_public_name() -> None:
    page = site_reference.PAGES["reference/python.md"]()
    headings = re.findall(r"^## bragg\.(\w+)$", page, re.MULTILINE)
    assert headings == [name for name in bragg.__all__ if name != "__version__"]
    options = dict(re.findall(r"^\| `(\w+)` \| `.+?` \| (.+) \|$", page, re.MULTILINE))
    assert set(options) == {item.name for item in fields(RecordConfig)}
    assert "= <" not in page  # no address of an object, which differs in each build


def test_metrics_that_are_recorded_are_in_the_reference() -> None:
    sources = [path.read_text() for path in (ROOT / "src" / "bragg").glob("formats/captured/*.py")]
    sources += [(ROOT / "src" / "bragg" / "grouping" / "regions.py").read_text()]
    recorded = {name for text in sources for name in RECORDED.findall(text)}
    assert len(recorded) >= 8
    assert recorded - set(MEANINGS) == set()


def test_table_of_metrics_has_units_and_kinds() -> None:
    table = site_reference.expanded("<!-- made from the code: metrics -->")
    assert "| `gpu_time` | `ns` | inclusive | Time that kernels" in table
    assert "| `gpu_idle_time` | `ns` | inclusive |" in table
    assert table.count("\n") == len(MEANINGS) + 2


def test_table_of_checkers_leads_to_their_sections() -> None:
    table = site_reference.expanded("<!-- made from the code: checkers -->")
    linked = set(re.findall(r"\(#([\w-]+)\)", table))
    sections = set(re.findall(r"^## ([\w-]+)$", (ROOT / "docs/reference/checkers.md").read_text(), re.MULTILINE))
    assert linked == sections == {*CHECKERS, "kernel-fault"}


def test_columns_have_types_and_meanings() -> None:
    table = site_reference.expanded("<!-- made from the code: columns -->")
    assert "| `duration_ns` | int64 | Length, never negative. |" in table
    assert "**slices**" in table
