"""Exports of one small trace, compared byte for byte.

After a wanted change write them anew with `python -m tests.golden.test_exports`, and read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.model import Profile
from tests.support.traces import trace_from_text

FOLDER = Path(__file__).parent / "exports"
FORMATS = ("chrome", "collapsed", "hatchet", "perfetto", "speedscope")


def golden_profile() -> Profile:
    return trace_from_text((FOLDER / "trace.txt").read_text())


@pytest.mark.parametrize("format_name", FORMATS)
def test_export_is_what_it_was(format_name: str, tmp_path: Path) -> None:
    formats.export(golden_profile(), format_name, tmp_path / "export")
    assert (tmp_path / "export").read_bytes() == (FOLDER / format_name).read_bytes()


if __name__ == "__main__":
    for name in FORMATS:
        formats.export(golden_profile(), name, FOLDER / name)
