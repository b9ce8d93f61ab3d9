from __future__ import annotations

from pathlib import Path

import pytest

from bragg.cli.output_file import refuse_existing, write_text
from bragg.errors import BadFile, UsageError
from bragg.views.web.page import page


def test_file_that_exists_is_refused_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    refuse_existing(target, force=False)
    target.touch()
    with pytest.raises(UsageError, match=r"page\.html exists"):
        refuse_existing(target, force=False)
    refuse_existing(target, force=True)


def test_a_page_of_bragg_is_made_anew(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text(page([], "train"), encoding="utf-8")
    refuse_existing(target, force=False)


def test_text_is_utf_8(tmp_path: Path) -> None:
    write_text(tmp_path / "page.html", "→")
    assert (tmp_path / "page.html").read_bytes() == "→".encode()


def test_missing_directory_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"cannot write .*missing/page\.html: No such file or directory"):
        write_text(tmp_path / "missing" / "page.html", "")
