from __future__ import annotations

from pathlib import Path

import pytest

from bragg.proton import viewer

DEVICES = {
    "CUDA": {
        "0": {"arch": "90", "bus_width": 6144, "clock_rate": 1_980_000, "memory_clock_rate": 2_619_000, "num_sms": 132}
    }
}


def test_a_kernel_without_bytes_needs_no_time_for_them() -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"device_id": ["0", "0"], "bytes": [float("nan"), 4.0227840e12]})
    assert viewer.get_min_time_bytes(rows, DEVICES)["min_time"].round(9).tolist() == [0, 1]


def test_metric_that_is_not_there_is_named_as_in_the_file() -> None:
    with pytest.raises(RuntimeError, match="Metric cycles is not found"):
        viewer.match_available_metrics("Cycles", ["time (ns)"], [])


def test_a_file_that_nests_without_end_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "deep.hatchet"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"deep\.hatchet nests deeper than its reader goes$"):
        viewer.load(path)
