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
        "2 steps; the row of the total is a whole step",
        "the GPU is busy 45 % of a step and waits for data, 70 % of it: "
        "try more num_workers, or larger batches of cheaper items",
    ]


def test_the_steps_of_a_run_without_parts_are_told_as_at_its_end(bragg: Bragg, trained: Path) -> None:
    lines = bragg("view", trained).stdout.splitlines()
    assert lines[1].startswith("2 steps of 10.0 ms: data 70.0 %")
    assert lines[2].startswith("backend")


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


@pytest.fixture
def waited(tmp_path: Path) -> Path:
    """A model whose program waits for the GPU."""
    text = "root\n  Net host=6us\n    matmul 4us\n  item host=1us\n    cudaStreamSynchronize #gpu_api host=5us sync=5us"
    path = tmp_path / "waited.bragg"
    meta = {"attributes": {"Net": {"module": "Net"}}}
    formats.export(replace(profile_from_text(text), meta=meta), "bragg", path)
    return path


def test_modules_have_any_metric_that_adds_up_by_any_of_its_names(bragg: Bragg, waited: Path) -> None:
    shown = json.loads(bragg("view", waited, "--group-by", "module", "-m", "CPU_TIME,gpu_wait", "--json").stdout)
    values = {row["name"]: (row["values"]["forward"], row["values"]["gpu_wait"]) for row in shown["rows"]}
    assert values == {"total": (6000, 3000), "Net": (6000, 2000)}
    outcome = bragg("view", waited, "--group-by", "module", "-m", "gpu_wait")
    assert outcome.stderr.splitlines() == [
        "error: 'gpu_wait' is not a metric of this profile that adds up",
        "hint: Name one first that does, such as gpu_time",
    ]


def test_phases_are_in_the_unit_of_what_they_are_parts_of_and_narrow_rows_tell_what_is_new(
    bragg: Bragg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "root\n  data host=7s\n  Net host=6ms\n    Net.layers host=1ms\n      Net.layers.10.attention host=2ms"
    path = tmp_path / "large.bragg"
    meta = {"attributes": {name: {"module": name[:3]} for name in ("Net", "Net.layers", "Net.layers.10.attention")}}
    formats.export(replace(profile_from_text(text), meta=meta), "bragg", path)
    lines = bragg("view", path, "--group-by", "module").stdout.splitlines()
    assert lines[3].split()[:2] == ["host_time", "ms"]
    assert lines[5].split()[:1] + lines[5].split()[3:4] == ["9.00", "9.00"]
    assert lines[7].endswith("Net.layers.10.attention (Net)")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = bragg("view", path, "--group-by", "module").stdout.splitlines()
    assert [line.partition("└ ")[2] for line in narrow[6:8]] == [".layers (Net)", ".10.attent…(Net)"]


def test_who_waits_is_told_by_code_and_not_by_module(bragg: Bragg, waited: Path) -> None:
    lines = bragg("view", waited, "--group-by", "module").stdout.splitlines()
    assert "the host waited 5.00 us for the GPU, 41.7 % of its time, 100.0 % of that in 'item'" in lines


def test_modules_and_regions_of_two_profiles_are_not_compared(bragg: Bragg, trained: Path) -> None:
    outcome = bragg("view", trained, "--group-by", "region", "-diff", trained)
    assert outcome.exit_code == 2
    assert "--group-by region shows one profile at a time" in outcome.stderr


def test_a_profile_without_regions_says_how_to_record_them(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("view", profile_file, "--group-by", "region")
    assert outcome.exit_code == 2
    assert "bragg run --regions all" in outcome.stderr


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    """Two steps of 10 ms, without regions."""
    regions = {"step": {"count": 2, "total_ns": 20_000_000, "in_steps_ns": 20_000_000, "buckets": {"330": 2}}}
    path = tmp_path / "stepped.bragg"
    formats.export(replace(profile_from_text("matmul 6ms\n"), meta={"regions": regions}), "bragg", path)
    return path


def test_steps_without_regions_say_how_to_record_them(bragg: Bragg, stepped: Path) -> None:
    lines = bragg("view", stepped, "--group-by", "region").stdout.splitlines()
    assert lines[-2:] == [
        "2 steps; the row of the total is a whole step",
        "what they consist of: bragg run --regions all",
    ]


def test_a_gate_on_a_region_needs_its_times(bragg: Bragg, stepped: Path) -> None:
    assert bragg("diff", "--gate", "step", stepped, stepped).exit_code == 0
    outcome = bragg("diff", "--gate", "region:forward", stepped, stepped)
    assert outcome.exit_code == 2
    assert "the ends of steps were recorded, but no region" in outcome.stderr
