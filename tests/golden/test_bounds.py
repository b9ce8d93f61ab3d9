"""What bounds 25 kernels on an H100, by one recording with `--counters units`, is what Nsight Compute says of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.analyze.causes.bounds import bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.report import answered
from bragg.analyze.roofline import roofline
from bragg.model import Profile
from bragg.views.text.analysis_text import analysis_lines
from bragg.views.text.style import Style

_ROOT = Path(__file__).parents[2]
_RECORDINGS = Path(__file__).parent / "recordings"
_RESULTS = _ROOT / "benchmarks/results/ncu_bounds_h100.json"


def test_bounds_by_one_recording_are_those_of_ncu() -> None:
    profile = formats.load(_RECORDINGS / "kernels/h100-units.bragg")
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
    profile = formats.load(_RECORDINGS / "pairs/h100-rereads_slow.bragg")
    sentence, *lines = analysis_lines(answered(profile), Style())
    assert sentence.startswith("The GPU's memory bandwidth bounds the program: of 1.09 s, the steady state, the GPU ")
    assert "  What limits the GPU, by counters: memory bandwidth 100 % of its time" in lines


def halved(profile: Profile) -> tuple[float | None, float | None]:
    """What half of all work of the GPU saves, and half of the host's part of the time, as the findings count."""
    evidence, everything = Evidence(profile), np.ones(len(profile.tree), np.bool_)
    gains = evidence.gpu_gain(everything, 0.5), evidence.host_gain(everything, 0.5)
    of_gpu, of_host = (None if gain is None else gain.share for gain in gains)
    return of_gpu, of_host


def test_where_the_gpu_bounds_half_of_its_work_saves_more_than_half_of_the_hosts() -> None:
    n_bound = 0
    for path in _RECORDINGS.rglob("*.bragg"):
        profile = formats.load(path)
        if bounds_of(Evidence(profile)).by == "the GPU":
            of_gpu, of_host = halved(profile)
            assert of_gpu is not None, path.name
            assert of_gpu > (of_host or 0.0), path.name
            n_bound += 1
    assert n_bound > 100


def test_a_gpu_that_waits_for_the_host_as_long_as_it_works_does_not_bound_the_program() -> None:
    profile = formats.load(_RECORDINGS / "pairs/h100-worker_starts_slow.bragg")
    sentence, *_ = analysis_lines(answered(profile), Style())
    assert sentence == ("Input bounds most of the program: in 191 steps of 8.65 ms, the GPU works 51 % and waits 49 %.")


def test_where_it_is_not_known_which_bounds_more_both_do() -> None:
    profile = formats.load(_RECORDINGS / "pairs/h100-masked_rows_fast.bragg")
    sentence, *_ = analysis_lines(answered(profile), Style())
    assert sentence == (
        "The GPU and the host bound the program: in 198 steps of 377 us, the GPU works 75 % and waits 25 %; "
        "a timeline tells which of them bounds more."
    )
    assert halved(profile) == (None, pytest.approx(0.097, abs=0.001))
