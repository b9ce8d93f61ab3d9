"""What an analysis says, in lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg.views.text.analysis_text import short_path


def test_files_below_the_working_directory_are_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert short_path(f"{tmp_path}/a/b/c/train.py") == "a/b/c/train.py"
    assert short_path("/home/me/a/b/train.py") == "a/b/train.py"
    assert short_path("/usr/lib/site-packages/torch/nn/linear.py") == "torch/nn/linear.py"
