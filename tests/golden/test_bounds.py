"""What bounds 25 kernels on an H100, by one recording with `--counters units`, is what Nsight Compute says of them."""

from __future__ import annotations

import json
from pathlib import Path

from bragg import formats
from bragg.analyze.report import answered
from bragg.analyze.roofline import roofline
from bragg.views.text.analysis_text import analysis_lines
from bragg.views.text.style import Style

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks/results/ncu_bounds_h100.json"


def test_bounds_by_one_recording_are_those_of_ncu() -> None:
    profile = formats.load(Path(__file__).parent / "recordings/kernels/h100-units.bragg")
    points = {point.name: point for point in roofline(profile).points}
    results = json.loads(_RESULTS.read_text())
    told = {name: each.bound or ("latency" if each.is_bound_by_latency else None) for name, each in points.items()}
    assert [told.get(row["kernel"]) for row in results["kernels"]] == [row["bound"] for row in results["kernels"]]
    compared = [row for row in results["kernels"] if "wrong" in row]
    assert len(compared) >= 20
    assert [row["kernel"] for row in compared if "bound at the pace of the run" in row["wrong"]] == []


def test_all_kinds_of_bounds_are_among_them() -> None:
    bounds = {row["bound"] for row in json.loads(_RESULTS.read_text())["kernels"]}
    assert bounds >= {"compute", "latency", "memory"}


def test_the_first_sentence_names_the_bandwidth_that_counters_have_measured() -> None:
    profile = formats.load(Path(__file__).parent / "recordings/pairs/h100-rereads_slow.bragg")
    sentence, *lines = analysis_lines(answered(profile), Style())
    assert sentence.startswith("The GPU's memory bandwidth bounds the program: of 1.09 s, the steady state, the GPU ")
    assert "  What limits the GPU, by counters: memory bandwidth 100 % of its time" in lines
