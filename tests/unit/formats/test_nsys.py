from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile
from tests.support.nsys_database import write_database
from tests.support.profiles import tree_to_text


def test_gpu_work_is_below_the_ranges_around_its_launch(tmp_path: Path) -> None:
    profile = formats.load(write_database(tmp_path / "report.sqlite"))
    assert tree_to_text(profile).splitlines() == [
        "root",
        "  forward host=60ns hostx1",
        "    cudaMemcpyAsync host=10ns hostx1",
        "    model: step host=10ns hostx1",
        "      cudaLaunchKernel host=10ns hostx1",
        "      matmul(float*) 400ns",
        "    cudaLaunchKernel host=10ns hostx1",
        "    matmul(float*) 300ns",
        "    Memcpy HtoD 50ns bytes=4096",
        "  <launch not recorded>",
        "    Memset 10ns bytes=64",
        "  epoch",
    ]
    assert profile.own("marker_time")[-1] == 1910


def test_times_threads_devices_and_launch_configurations_are_those_of_the_database(tmp_path: Path) -> None:
    profile = formats.load(write_database(tmp_path / "report.sqlite"))
    assert profile.slices.start_ns.min() == 1_790_000_000_000_000_090
    assert [profile.tracks.label(track) for track in range(3)] == ["GPU 0 stream 7", "loader", "ranges"]
    assert profile.tracks.process.tolist() == [4242] * 3
    assert profile.meta["devices"] == [{"name": "NVIDIA H100", "num_sms": 132, "arch": "90"}]
    assert profile.meta["nsys_schema"] == "3.11.0"
    kernels = profile.kernels
    assert (kernels.registers.tolist(), kernels.grid_y.tolist(), kernels.count.tolist()) == ([64], [2], [2])


def test_database_of_an_older_release_lacks_tables_and_names_of_copies(tmp_path: Path) -> None:
    path = write_database(tmp_path / "old.sqlite", "META_DATA_EXPORT", "TARGET_INFO_GPU", "ThreadNames", "NVTX_EVENTS")
    profile = formats.load(path)
    assert profile.total("gpu_time") == 760
    assert "nsys_schema" not in profile.meta


def test_equal_correlation_ids_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    path = write_database(tmp_path / "report.sqlite")
    other = 77 << 24
    with closing(sqlite3.connect(path)) as database:
        row = (20, 25, 1, 1, 7, 11, other, 1, 6, *[0] * 10)
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * len(row))})", row)
        database.commit()
    text = tree_to_text(formats.load(path))
    assert "  <launch not recorded>\n    matmul(float*) 5ns" in text


def test_gpu_work_that_does_not_say_its_process_belongs_to_the_only_one(tmp_path: Path) -> None:
    path = write_database(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as database:
        for table in ("KERNEL", "MEMCPY", "MEMSET"):
            database.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_{table} DROP COLUMN globalPid")
        database.commit()
    assert "    model: step host=10ns hostx1\n      cudaLaunchKernel host=10ns hostx1\n      matmul(float*) 400ns" in (
        tree_to_text(formats.load(path))
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'", "'soon' is not an integer"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 3", "an event ends before it starts"),
        ("DROP TABLE StringIds", "unknown format"),
    ],
)
def test_database_that_is_damaged_or_of_another_program_is_refused(change: str, error: str, tmp_path: Path) -> None:
    path = write_database(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute(change)
        database.commit()
    with pytest.raises(BadFile, match=error):
        formats.load(path)


def test_facts_that_are_bytes_are_left_out(tmp_path: Path) -> None:
    path = write_database(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE TARGET_INFO_GPU SET name = x'ff'")
        connection.execute("UPDATE META_DATA_EXPORT SET value = x'ff'")
        connection.commit()
    meta = formats.load(path).meta
    assert "name" not in meta["devices"][0]
    assert "nsys_schema" not in meta
