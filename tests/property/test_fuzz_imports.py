"""Damaged files of other profilers: each read as a valid profile or refused in one line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile
from tests.support.iprof_trace import iprof_trace
from tests.support.mutations import fill, flip_bits, outcomes, splice, truncate
from tests.support.nsys_database import write_database

FOLDER = Path(__file__).parents[1] / "golden" / "imports"
MUTATIONS = (flip_bits, truncate, splice, fill)
N_FILES = 1000


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize(
    "name", ["jax.trace.json.gz", "py-spy.chrome.json", "py-spy.speedscope.json", "jax-memory.pprof"]
)
def test_no_damaged_file_is_read_wrongly(name: str, tmp_path: Path) -> None:
    content = (FOLDER / name).read_bytes()
    whole = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    found = outcomes(whole, MUTATIONS, tmp_path / "file", N_FILES)
    assert found["read"] > 0
    assert found["BadFile"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
def test_no_damaged_compression_is_read_wrongly(tmp_path: Path) -> None:
    found = outcomes((FOLDER / "jax.trace.json.gz").read_bytes(), MUTATIONS, tmp_path / "file", N_FILES)
    assert found["BadFile"] > N_FILES // 2


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
def test_no_damaged_database_is_read_wrongly(tmp_path: Path) -> None:
    whole = write_database(tmp_path / "report.sqlite").read_bytes()
    found = outcomes(whole, MUTATIONS, tmp_path / "file", N_FILES)
    assert found["read"] > 0
    assert found["BadFile"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
def test_no_damaged_perfetto_trace_is_read_wrongly(tmp_path: Path) -> None:
    found = outcomes(iprof_trace(("a", "b")), MUTATIONS, tmp_path / "file", N_FILES)
    assert found["read"] > 0
    assert found["BadFile"] > 0


@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize(
    "content",
    [
        b'{"traceEvents":[' + b"[" * 100_000,
        b'{"traceEvents":["' + b"a" * (200 << 20),
        b'{"shared":{},"profiles":' + b"[" * 100_000,
        gzip.compress(b'{"traceEvents":["' + b"a" * (200 << 20), 1),
        gzip.compress(b'{"shared":"' + b"a" * (600 << 20), 1),
    ],
    ids=["depth of a trace", "endless value", "depth of stacks", "endless value in gzip", "bomb"],
)
def test_bottomless_file_is_refused_in_bounded_memory(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadFile, match=r"damaged|too large|unknown format"):
        formats.load(tmp_path / "file")
