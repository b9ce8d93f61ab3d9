"""Arrays of JAX in a capture, from its own profile of what is alive."""

from __future__ import annotations

import gzip
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats import capture
from bragg.model import FrameKind, Profile
from bragg.views.text.memory_facts import memory_lines, memory_warnings
from tests.support.captures import small_capture

RECORDED = (Path(__file__).resolve().parents[3] / "golden/imports/jax-memory.pprof").read_bytes()
STATS = {"jax_memory": {"0": {"peak_bytes_in_use": 1_000, "bytes_limit": 60_000_000_000, "num_allocs": 7}}}


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer; numbers are small ones."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    n_bytes, size = len(value), b""
    while n_bytes > 127:
        size += bytes([n_bytes & 127 | 128])
        n_bytes >>= 7
    return bytes([number << 3 | 2]) + size + bytes([n_bytes]) + value


def read(folder: Path, content: bytes, **more: Any) -> Profile:
    arrays = {"in_use_bytes": 800, "took_ns": 9, "pprof": b64encode(content).decode()}
    builder = small_capture().meta(pid=42, jax_arrays=arrays, **STATS, **more)
    profile = capture.read(builder.write(folder / "run.part"))
    profile.check()
    return profile


def test_arrays_are_at_the_lines_that_made_them(tmp_path: Path) -> None:
    profile = read(tmp_path, RECORDED)
    tree, held = profile.tree, profile.own("gpu_memory_peak")
    paths = {
        tuple((tree.frames.name[frame], int(tree.frames.line[frame])) for frame in tree.frame[tree.path(node)[1:]])
        for node in np.flatnonzero(held).tolist()
    }
    assert paths == {(("[arrays of JAX]", 0), ("<module>", 5))}
    assert held.sum() == 512  # without compiled programs, which are no arrays
    assert set(tree.kind[np.flatnonzero(held)].tolist()) == {FrameKind.PYTHON}
    assert profile.meta["jax_arrays"] == {"in_use_bytes": 800, "took_ns": 9, "held_bytes": 512}
    assert memory_lines(profile.meta)[-1] == (
        "arrays of JAX: 512 B by call path, from a snapshot with 800 B in use (1.00 kB at the peak)"
    )


def test_a_snapshot_that_is_damaged_is_told(tmp_path: Path) -> None:
    for content in (b"", RECORDED[:-20], gzip.compress(b"\xff" * 40), b"not compressed"):
        profile = read(tmp_path, content)
        assert "gpu_memory_peak" not in profile.metrics
        (warning,) = memory_warnings(profile.meta)
        assert warning.startswith("arrays of JAX have no call paths: damaged: ")


def test_a_snapshot_with_a_path_without_end_is_told(tmp_path: Path) -> None:
    sample_type = field(1, field(1, 1) + field(2, 2))
    location = field(4, field(1, 1) + field(4, field(1, 1)))
    function = field(5, field(1, 1) + field(2, 3) + field(4, 3))
    sample = field(2, field(1, b"\x01" * 60_000) + field(2, 8))
    texts = b"".join(field(6, text) for text in (b"", b"space", b"bytes", b"f.py"))
    profile = read(tmp_path, gzip.compress(sample_type + sample + location + function + texts))
    (warning,) = memory_warnings(profile.meta)
    assert warning.startswith("arrays of JAX have no call paths: damaged: ")
    assert "depth" in warning or "deep" in warning


def test_a_snapshot_that_is_no_text_of_base_64_is_told(tmp_path: Path) -> None:
    builder = small_capture().meta(pid=42, jax_arrays={"pprof": "\x00!", "in_use_bytes": 1})
    (warning,) = memory_warnings(capture.read(builder.write(tmp_path / "run.part")).meta)
    assert warning.startswith("arrays of JAX have no call paths: damaged: ")
