from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.model.kernels.counters import KernelCounter
from tests.unit.cli.conftest import Bragg


def test_info_counts_what_the_profile_holds(bragg: Bragg, profile_file: Path) -> None:
    values = json.loads(bragg("info", profile_file, "--json").stdout)
    assert values["rows"]["call paths"] == 7
    assert values["metrics"]["gpu_time"] == {"unit": "ns", "kind": "inclusive"}
    assert values["size_bytes"] == profile_file.stat().st_size
    assert sum(values["part_bytes"].values()) < values["size_bytes"]
    assert values["meta"]["command"] == ["/usr/bin/python3", "train.py"]


def test_info_says_how_it_was_recorded(bragg: Bragg, profile_file: Path) -> None:
    lines = bragg("info", profile_file).stdout.splitlines()
    assert lines[0] == f"{profile_file}: python3 train.py"
    assert '  command  ["/usr/bin/python3", "train.py"]' in lines
    assert "  gpu_time   ns, inclusive" in lines
    assert "  gpu_count  count, inclusive" in lines


def test_of_counts_those_are_shown_that_are_not_zero(bragg: Bragg, profile_file: Path) -> None:
    profile = formats.load(profile_file)
    statistics = {"launches": 4711, "kernels": 0, "copies": 12, "sets": 0}
    meta = {**profile.meta, "statistics": statistics, "gpu_busy_ns": {"0": 5}}
    formats.export(replace(profile, meta=meta), "bragg", profile_file)
    lines = bragg("info", profile_file).stdout.splitlines()
    assert "  statistics   launches 4,711, copies 12; others: 0" in lines
    assert '  gpu_busy_ns  {"0": 5}' in lines


def test_a_table_that_fills_a_screen_is_cut_to_its_names(bragg: Bragg, profile_file: Path) -> None:
    profile = formats.load(profile_file)
    attributes = {f"Net.block{row}": {"module": "Block" * 20} for row in range(7)}
    formats.export(replace(profile, meta={**profile.meta, "attributes": attributes}), "bragg", profile_file)
    (line,) = (line for line in bragg("info", profile_file).stdout.splitlines() if "attributes" in line)
    shown = "Net.block0, Net.block1, Net.block2, Net.block3, Net.block4 and 2 more; --json shows what is known of them"
    assert line.split(maxsplit=1)[1] == shown
    assert json.loads(bragg("info", profile_file, "--json").stdout)["meta"]["attributes"] == attributes


def test_info_says_what_clocks_inside_of_kernels_told(bragg: Bragg, profile_file: Path) -> None:
    profile = formats.load(profile_file)
    refused = {"kernel": "matmul\x1b[31m", "level": "", "refused": [{"level": "waits", "why": "cost"}], "pairs": 3}
    formats.export(replace(profile, meta={**profile.meta, "inside_kernels": [refused]}), "bragg", profile_file)
    last = bragg("info", profile_file).stdout.splitlines()[-1]
    assert last.startswith("inside matmul")
    assert last.endswith("no clocks: waits: costs too much")
    assert "\x1b" not in last
    assert json.loads(bragg("info", profile_file, "--json").stdout)["meta"]["inside_kernels"] == [refused]


def test_a_kernel_that_is_too_short_for_its_counters_says_so(
    bragg: Bragg, profile_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = KernelCounter(0, "DRAM read [B/s]", "copy", 3.2e12, 1.5e10, 40_000, 0.95, is_told=True)
    rows = [long, replace(long, kernel="tiny", sampled_share=0.46, is_told=False)]
    monkeypatch.setattr("bragg.model.kernels.counters.kernel_counters", lambda _: rows)
    *_, title, first, second = bragg("info", profile_file).stdout.splitlines()
    assert title == "  GPU 0, DRAM read [B/s]"
    assert first.split() == ["3.2e+12", "+-", "1.5e+10", "copy"]
    assert second.split("  ")[2:3] == ["too short to tell"]
    assert second.endswith(" tiny (in 46.0 % of its time)")
    told = json.loads(bragg("info", profile_file, "--json").stdout)["counters"]
    assert [(row["value"], row["error"]) for row in told] == [(3.2e12, 1.5e10), (None, None)]
    assert [row["sampled_share"] for row in told] == [0.95, 0.46]
