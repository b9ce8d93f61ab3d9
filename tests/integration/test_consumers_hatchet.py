"""The Hatchet export, opened by llnl-hatchet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
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
