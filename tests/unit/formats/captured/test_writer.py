from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bragg.formats.captured.writer import is_being_written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")


@pytest.mark.parametrize("name", ["{}.part", "{}-2.part", "{}.part_1.part"])
def test_a_capture_is_being_written_as_long_as_its_process_has_it_open(tmp_path: Path, name: str) -> None:
    capture = tmp_path / name.format(os.getpid())
    with capture.open("wb"):
        assert is_being_written(capture)
    assert not is_being_written(capture)


@pytest.mark.parametrize("name", ["run.part", "4194305.part"])  # above the largest process id of Linux
def test_a_capture_that_no_process_has_open_is_not_being_written(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb"):
        assert not is_being_written(tmp_path / name)


def test_a_capture_that_is_gone_is_not_being_written(tmp_path: Path) -> None:
    assert not is_being_written(tmp_path / f"{os.getpid()}.part")
