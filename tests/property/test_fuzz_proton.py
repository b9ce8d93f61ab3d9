"""Damaged files of Proton: each read as a valid profile or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile
from tests.support.mutations import fill, flip_bits, outcomes, splice, truncate

FOLDER = Path(__file__).parents[1] / "golden" / "proton"
MUTATIONS = (flip_bits, truncate, splice, fill)
N_FILES = 2_500  # of each of four


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize(
    "name",
    ["kernels-3.9.hatchet", "scopes-3.9.hatchet_msgpack", "kernels-3.6.chrome_trace", "kernels-3.9.chrome_trace"],
)
def test_no_damaged_file_of_proton_is_read_wrongly(name: str, tmp_path: Path) -> None:
    found = outcomes((FOLDER / name).read_bytes(), MUTATIONS, tmp_path / "file", N_FILES)
    assert found["read"] > 0
    assert found["BadFile"] > 0


@pytest.mark.parametrize("content", [b"[" * 100_000, b'[{"a":' * 100_000, b"\x92\x81" + b"\x91" * 100_000])
def test_bottomless_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadFile, match=r"damaged|unknown format"):
        formats.load(tmp_path / "file")
