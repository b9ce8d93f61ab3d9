from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from bragg.errors import BadFile
from bragg.formats.job.kept import KeptCollectives
from bragg.model.ranks.summary import CollectiveTable


def table(first: int) -> CollectiveTable:
    columns = {name: np.arange(first, first + 5) for name in CollectiveTable.columns()}
    return CollectiveTable(**{**columns, "start_ns": columns["start_ns"] + (1 << 60)}).copied()


def test_what_is_kept_is_read_as_it_was_without_a_file_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = KeptCollectives()
    tables = [table(number) for number in range(3)]
    readers = [kept.keep(each) for each in (*tables, CollectiveTable.empty())]
    assert list(tmp_path.iterdir()) == []
    for own, read in zip(tables, readers, strict=False):
        for name in own.columns():
            assert np.array_equal(getattr(read(), name), getattr(own, name))
            assert getattr(read(), name).dtype == getattr(own, name).dtype
    assert len(readers[-1]()) == 0


def test_no_room_for_the_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(BadFile, match="no room for a temporary file"):
        KeptCollectives()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = KeptCollectives()
    monkeypatch.setattr(os, "write", lambda _file, content: len(content) - 1)
    with pytest.raises(BadFile, match="no room for a temporary file"):
        kept.keep(table(0))
