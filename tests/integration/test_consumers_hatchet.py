"""The Hatchet export, opened by llnl-hatchet."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.model import Metric, MetricKind
from tests.support.profiles import profile_from_text

pytestmark = [pytest.mark.consumer, pytest.mark.filterwarnings("default")]

TEXT = """root
  forward host=90us
    matmul 12us x3 @0
    relu 3us @0
  backward
    matmul 20us @1"""


@pytest.fixture
def frame(tmp_path: Path) -> Any:
    hatchet = pytest.importorskip("hatchet")
    formats.export(profile_from_text(TEXT), "hatchet", tmp_path / "run.hatchet")
    tree, _ = json.loads((tmp_path / "run.hatchet").read_text())
    found = hatchet.GraphFrame.from_literal([tree])
    # Proton's viewer makes the metrics inclusive that the root names.
    found.update_inclusive_columns()
    return found.dataframe


def test_hatchet_adds_up_metrics_of_the_program_that_add_up_and_no_others(tmp_path: Path) -> None:
    hatchet = pytest.importorskip("hatchet")
    own = {"flops8": [0, 0, 2e10, 0, 0, 1e10], "lat": [0, 3, 0, 0, 4, 0]}
    kinds = {"flops8": MetricKind.INCLUSIVE, "lat": MetricKind.EXCLUSIVE}
    added = {name: Metric(name, "", kinds[name], np.array(values)) for name, values in own.items()}
    profile = profile_from_text(TEXT)
    formats.export(replace(profile, metrics={**profile.metrics, **added}), "hatchet", tmp_path / "run.hatchet")
    found = hatchet.GraphFrame.from_literal([json.loads((tmp_path / "run.hatchet").read_text())[0]])
    found.update_inclusive_columns()
    assert ("ROOT", 3e10) in by_name(found.dataframe, "flops8 (inc)")
    assert ("forward", 2e10) in by_name(found.dataframe, "flops8 (inc)")
    assert "lat (inc)" not in found.dataframe.columns
    assert by_name(found.dataframe, "lat") == [("backward", 4), ("forward", 3)]


def by_name(frame: Any, column: str) -> list[tuple[str, float]]:
    return sorted((name, value) for name, value in zip(frame["name"], frame[column], strict=True) if value == value)


def test_hatchet_reads_every_kernel_with_its_time_and_device(frame: Any) -> None:
    kernels = frame[frame["device_id"].notna()]
    assert sorted(zip(kernels["name"], kernels["time (ns)"], kernels["device_id"], strict=True)) == [
        ("matmul", 12_000, "0"),
        ("matmul", 20_000, "1"),
        ("relu", 3_000, "0"),
    ]


def test_hatchet_adds_up_to_the_inclusive_values_of_the_profile(frame: Any) -> None:
    assert by_name(frame, "time (ns) (inc)") == [
        ("ROOT", 35_000),
        ("backward", 20_000),
        ("forward", 15_000),
        ("matmul", 12_000),
        ("matmul", 20_000),
        ("relu", 3_000),
    ]
    assert ("ROOT", 5) in by_name(frame, "count (inc)")
    assert ("ROOT", 90_000) in by_name(frame, "cpu_time (ns) (inc)")
