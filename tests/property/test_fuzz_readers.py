"""Every reader against a few of the hostile files that `python -m tests.support.fuzzing` makes by thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzzing import READERS, fuzz

N_FILES = 60
N_CALLS = 20  # of commands, which take longer


@pytest.mark.parametrize("reader", READERS)
def test_no_hostile_file_takes_long_or_much_or_fails(reader: str, tmp_path: Path) -> None:
    if reader == "mcp-calls":
        pytest.importorskip("mcp")
    result = fuzz(reader, N_CALLS if reader == "mcp-calls" else N_FILES, tmp_path / "file")
    assert result.failures == []
    assert result.outcomes["read"] > 0
    assert result.outcomes[READERS[reader].refusal] > 0
