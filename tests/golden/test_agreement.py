"""View, table, TUI, sentences and JSON of one profile have the same rows, names, ranks and numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.answer import Answer, answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.idle_paths import with_added_up_idle
from bragg.analyze.imports import without_imports
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.steady import steady_part
from bragg.model import FrameKind, Profile
from bragg.views.terminal.flat_view import flat_lines, flat_view
from bragg.views.terminal.summary import summary_lines
from bragg.views.terminal.tree_text import tree_lines
from bragg.views.terminal.tree_view import tree_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.answer_text import sentences
from bragg.views.text.style import PLAIN
from bragg.views.text.units import share_text, value_text
from bragg.views.text.variants import rows_of_frames
from bragg.views.tui.rows import TreeRows
from bragg.views.web.hot_tables import hot_tables
from tests.support.recordings import RECORDINGS, SAMPLE

METRICS = ("gpu_time", "host_time")
# Recorded by default, without a timeline; the pair is one whose host works while its GPU waits.
_FOLDER = RECORDINGS[0].parent
OF_SUMS = [*sorted((_FOLDER / "default").glob("*.bragg")), _FOLDER / "pairs/h100-cpu_work_slow.bragg"]


@pytest.fixture(scope="module", params=[*RECORDINGS, *OF_SUMS, SAMPLE], ids=lambda path: path.stem)
def profile(request: pytest.FixtureRequest) -> Profile:
    return formats.load(Path(request.param))


def answer_of(profile: Profile) -> Answer:
    return answer(Evidence(profile), rows_of_frames(profile.tree.frames))


@pytest.mark.parametrize("metric", METRICS)
def test_the_table_and_its_json_have_the_same_rows(profile: Profile, metric: str) -> None:
    view = flat_view(profile, ViewOptions(metrics=(metric,), max_lines=40))
    rows = view.to_json()["rows"]
    lines = flat_lines(view, PLAIN)[1 : len(rows) + 1]
    for row, line in zip(rows, lines, strict=True):
        assert f" {row['name']}" in line
        assert share_text(row["share"]) in line
    values = [row["values"][metric] for row in rows]
    assert values == sorted(values, reverse=True)
    assert len({(row["name"], row["kind"], row["file"], row["line"]) for row in rows}) == len(rows)


@pytest.mark.parametrize("metric", METRICS)
def test_the_tree_its_json_and_the_tui_have_the_same_rows(profile: Profile, metric: str) -> None:
    view = tree_view(profile, ViewOptions(metrics=(metric,), max_lines=30))
    rows, lines, browsed = view.to_json()["rows"], tree_lines(view, PLAIN), TreeRows(view)
    for shown, _ in view.walk():
        first, last = (next(row for row in rows if row["id"] == shown.nodes[end]) for end in (0, -1))
        name = f"[{last['name']}" if last["folded_frames"] else last["name"]
        assert any(name in line and share_text(first["share"]) in line for line in lines), name
    for row in rows:
        below = [child["id"] for child in rows if child["parent"] == row["id"]]
        order = [child for child in browsed.children(row["id"]) if child in below]
        values = {child["id"]: child["values"][metric] for child in rows}
        assert [values[child] for child in order] == sorted((values[child] for child in below), reverse=True)
    assert rows[0]["values"][metric] == pytest.approx(profile.total(metric))


def test_trees_and_tables_have_the_same_totals(profile: Profile) -> None:
    for metric in METRICS:
        tree = tree_view(profile, ViewOptions(metrics=(metric,))).to_json()["rows"][0]["values"][metric]
        table = flat_view(profile, ViewOptions(metrics=(metric,))).to_json()["rows"]
        waited = profile.total("wait_time") if metric == "host_time" and "wait_time" in profile.metrics else 0
        outside = profile.own(metric)[0]
        assert sum(row["values"][metric] for row in table) + waited + outside == pytest.approx(tree, rel=1e-9)


def test_sentences_and_the_summary_name_what_the_table_names(profile: Profile) -> None:
    part = steady_part(profile)
    rows = flat_view(part, ViewOptions(metrics=("gpu_time",), max_lines=5)).to_json()["rows"]
    found = answer_of(profile)
    assert [spot.value for spot in found.hottest] == [row["values"]["gpu_time"] for row in rows[:3]]
    (said,) = [text for text in sentences(profile, found) if "of GPU time" in text]
    assert value_text(part.total("gpu_time"), "ns") in said
    for row in rows[:3]:
        assert PLAIN.cut(row["name"], 60) in said
        assert share_text(row["share"]) in said
    summary = [line for line in summary_lines(profile, PLAIN) if re.match(r"\s+[\d.]+ +[\d.]+ %  [█▉▊▋▌▍▎▏ ]+ ", line)]
    assert [line.split()[-1] for line in summary] == [row["name"].split()[-1] for row in rows]


def test_a_specialization_more_makes_no_row_more(profile: Profile) -> None:
    short = flat_view(profile, ViewOptions(metrics=("gpu_time",))).to_json()["rows"]
    whole = flat_view(profile, replace(ViewOptions(metrics=("gpu_time",)), full_names=True)).to_json()["rows"]
    assert len(short) <= len(whole)
    assert sum(row["values"]["gpu_time"] for row in short) == sum(row["values"]["gpu_time"] for row in whole)


def test_the_page_shows_the_rows_of_the_table(profile: Profile) -> None:
    part = steady_part(profile)
    tables = {table["metric"] + table["title"]: table for table in hot_tables(profile, host_first=True)}
    ran = without_imports(profile) if part is profile else part
    for key, metric, of in (("gpu_timeBy kernel", "gpu_time", part), ("host_timeOn the host", "host_time", ran)):
        rows = flat_view(of, ViewOptions(metrics=(metric,), max_lines=10)).to_json()["rows"]
        shown = tables[key]["rows"]
        assert [row["value"] for row in shown] == [row["values"][metric] for row in rows]
        assert [row["share"] for row in shown] == [row["share"] for row in rows]
        for mine, row in zip(shown, rows, strict=True):
            assert row["name"] in mine["name"] or mine["node"] == 0
    operators = tables["gpu_timeBy operator"]["rows"]
    assert sum(row["share"] for row in operators) <= 1 + 1e-9
    assert all(profile.tree.kind[row["node"]] == FrameKind.OPERATOR for row in operators)


def test_what_the_gpu_waited_for_is_that_of_the_sentence(profile: Profile) -> None:
    parts = wall_parts(profile)
    assert parts is not None
    waits = with_added_up_idle(profile, parts.steady)
    assert (waits is None) == bool(len(profile.slices))
    if waits is None or parts.steady is None:
        return
    (said,) = [text for text in sentences(profile, answer_of(profile)) if text.startswith("The GPU waited")]
    rows = flat_view(waits, ViewOptions(metrics=("gpu_idle_time",), max_lines=6)).to_json()["rows"]
    of_host = [row for row in rows if not row["name"].startswith("<")][:2]
    for row in of_host:
        assert share_text(row["values"]["gpu_idle_time"] / parts.steady.duration_ns) in said
        assert PLAIN.cut(row["name"], 60) in said
