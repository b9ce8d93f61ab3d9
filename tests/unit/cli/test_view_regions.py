"""`bragg view --group-by region` and `module`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from tests.support.profiles import profile_from_text
from tests.unit.cli.conftest import Bragg

TEXT = """
root
  torch: data
    copy 1ms
  torch: forward
    Net
      matmul 6ms
      [backward] #state
        matmul 2ms
"""


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Two steps of 10 ms, of which 7 ms are data."""
    regions = {
        "step": {"count": 2, "total_ns": 20_000_000, "in_steps_ns": 20_000_000, "buckets": {"330": 2}},
        "backward": {"count": 2, "total_ns": 1_000_000, "in_steps_ns": 1_000_000, "buckets": {}},
        "forward": {"count": 2, "total_ns": 2_000_000, "in_steps_ns": 2_000_000, "buckets": {}},
        "data": {"count": 4, "total_ns": 14_000_000, "in_steps_ns": 14_000_000, "buckets": {"302": 4}},
    }
    meta = {"regions": regions, "attributes": {"Net": {"module": "Net"}}}
    path = tmp_path / "trained.bragg"
    formats.export(replace(profile_from_text(TEXT), meta=meta), "bragg", path)
    return path


def test_regions_are_a_table_with_what_they_say_below(bragg: Bragg, trained: Path) -> None:
    lines = bragg("view", trained, "--group-by", "region").stdout.splitlines()
    (data,) = (line for line in lines if line.endswith("─ data"))
    assert data.split()[:4] == ["14.00", "70.0", "%", "█████▋"]
    assert lines[-2:] == [
        "2 steps; what stands at the total is of a whole step",
        "the GPU is busy 45 % of a step and waits for data, 70 % of it: "
        "try more num_workers, or larger batches of cheaper items",
    ]


def test_a_narrow_terminal_has_room_for_regions(bragg: Bragg, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bragg("view", trained, "--group-by", "region").stdout.splitlines()
    header = next(line for line in lines if "call path" in line)
    assert " ".join(header.split()) == "region_time ms share mean ms p50 ms p95 ms gpu_time ms call path"
    assert max(map(len, lines[:-1])) <= 80


def test_json_has_the_same_numbers_and_sentences(bragg: Bragg, trained: Path) -> None:
    shown = json.loads(bragg("view", trained, "--group-by", "region", "--json").stdout)
    values = {row["name"]: row["values"] for row in shown["rows"]}
    assert values["data"]["region_time"] == 14_000_000
    assert values["backward"]["gpu_time"] == 2_000_000
    assert shown["hints"][0].startswith("2 steps")


def test_modules_and_regions_of_two_profiles_are_not_compared(bragg: Bragg, trained: Path) -> None:
    outcome = bragg("view", trained, "--group-by", "region", "-diff", trained)
    assert outcome.exit_code == 2
    assert "regions of one profile are shown at a time" in outcome.stderr


def test_a_profile_without_regions_says_how_to_record_them(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("view", profile_file, "--group-by", "region")
    assert outcome.exit_code == 2
    assert "bragg run --regions all" in outcome.stderr
