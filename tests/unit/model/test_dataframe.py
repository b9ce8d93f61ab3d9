from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import Combine, Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text


@pytest.fixture
def profile() -> Profile:
    found = profile_from_text("root\n  forward host=9us\n    a.py:3@step\n      matmul 12us x3 @1")
    tile = Metric("tile", "", MetricKind.PROPERTY, np.array([np.nan, np.nan, np.nan, 64]), Combine.MAX)
    name = Metric("name", "", MetricKind.EXCLUSIVE, np.array([0, 5, 0, 0]))
    return replace(found, metrics={**found.metrics, "tile": tile, "name": name})


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


def frame(profile: Profile, library: str, *table: str) -> dict[str, list[Any]]:
    found = getattr(profile, f"to_{library}")(*table)
    return {column: found[column].to_list() for column in found.columns}


def test_row_of_a_node_has_its_path_its_place_and_its_metrics(profile: Profile, library: str) -> None:
    nodes = frame(profile, library)
    assert nodes["path"] == ["", "forward", "forward > a.py:3@step", "forward > a.py:3@step > matmul"]
    assert [nodes[column][2] for column in ("name", "kind", "file", "line", "device")] == [
        "step",
        "python",
        "a.py",
        3,
        -1,
    ]
    assert nodes["gpu_time"] == [0, 0, 0, 12_000]
    assert nodes["gpu_time (inc)"] == [12_000] * 4
    assert nodes["parent"] == [-1, 0, 1, 2]


def test_property_has_no_value_where_there_is_none(profile: Profile, library: str) -> None:
    tile = frame(profile, library)["tile"]
    assert tile[3] == 64
    assert all(value is None or np.isnan(value) for value in tile[:3])
    assert "tile (inc)" not in frame(profile, library)


def test_metric_never_takes_the_place_of_a_column(profile: Profile, library: str) -> None:
    nodes = frame(profile, library)
    assert (nodes["name"][1], nodes["name (metric)"][1]) == ("forward", 5)


def test_row_of_a_slice_has_its_track(library: str) -> None:
    slices = frame(trace_from_text("thread 1\n  0-10 step\nstream 7\n  6-9 matmul <-5"), library, "slices")
    assert slices["path"] == ["step", "matmul"]
    assert (slices["start_ns"], slices["duration_ns"]) == ([0, 6], [10, 3])
    assert (slices["track_kind"], slices["stream"]) == (["host_thread", "gpu_stream"], [1, 7])


def test_profile_without_slices_gives_an_empty_table(profile: Profile, library: str) -> None:
    assert frame(profile, library, "slices")["start_ns"] == []


@pytest.mark.parametrize("missing", ["pandas", "polars"])
def test_missing_library_is_said_with_the_way_to_install_it(
    profile: Profile, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=f"{missing} is not installed") as error:
        getattr(profile, f"to_{missing}")()
    assert error.value.hint == f"Install it with: pip install 'bragg[{missing}]'"


def test_unknown_table_is_said(profile: Profile) -> None:
    pytest.importorskip("pandas")
    with pytest.raises(UsageError, match="no table 'kernels'"):
        profile.to_pandas("kernels")  # type: ignore[arg-type]
