"""Captures written in plain Python, for tests of their reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bragg.formats.captured.chunks import FILE_MAGIC, LAYOUTS, VERSION, ChunkType
from bragg.model import FrameKind

NONE = 0xFFFFFFFF
DEVICE, HOST, SAMPLE, MARKER, WAIT = 1, 2, 3, 4, 5


def chunk(chunk_type: int, rows: int, payload: bytes) -> bytes:
    """One chunk with its header and padding."""
    head = b"CHNK" + b"".join(
        value.to_bytes(size, "little")
        for value, size in ((chunk_type, 2), (0, 2), (rows, 4), (len(payload), 4), (crc32(payload), 4))
    )
    return head + crc32(head).to_bytes(4, "little") + padded(payload)


def table_chunk(chunk_type: ChunkType, columns: Mapping[str, Any], first_id: int = 0) -> bytes:
    """A chunk of columns; columns that are not given are zero."""
    rows = max(map(len, columns.values()))
    payload = first_id.to_bytes(8, "little")
    for name, dtype in LAYOUTS[chunk_type].items():
        payload += padded(np.asarray(columns.get(name, np.zeros(rows)), dtype).tobytes())
    return chunk(chunk_type, rows, payload)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


@dataclass
class CaptureBuilder:
    """A capture, chunk by chunk."""

    chunks: list[bytes] = field(default_factory=list)
    ids: dict[ChunkType, int] = field(default_factory=dict)

    def meta(self, **values: Any) -> CaptureBuilder:
        return self.add(chunk(ChunkType.META, 1, json.dumps(values).encode()))

    def strings(self, *texts: str) -> CaptureBuilder:
        encoded = [text.encode() for text in texts]
        lengths = np.array(list(map(len, encoded)), "<u4").tobytes()
        payload = self._take_ids(ChunkType.STRINGS, len(texts)).to_bytes(8, "little") + padded(lengths)
        return self.add(chunk(ChunkType.STRINGS, len(texts), payload + b"".join(encoded)))

    def rows(self, chunk_type: ChunkType, *rows: Sequence[int]) -> CaptureBuilder:
        """Rows with their columns in the order of the format."""
        columns = dict(zip(LAYOUTS[chunk_type], zip(*rows, strict=True), strict=True))
        numbered = chunk_type in (ChunkType.FRAMES, ChunkType.NODES, ChunkType.TRACKS)
        first_id = self._take_ids(chunk_type, len(rows)) if numbered else 0
        return self.add(table_chunk(chunk_type, columns, first_id))

    def end(self) -> CaptureBuilder:
        return self.add(chunk(ChunkType.END, 0, b""))

    def add(self, content: bytes) -> CaptureBuilder:
        self.chunks.append(content)
        return self

    def content(self) -> bytes:
        header = FILE_MAGIC + VERSION.to_bytes(4, "little") + bytes(4)
        return header + b"".join(self.chunks)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.content())
        return path

    def _take_ids(self, chunk_type: ChunkType, count: int) -> int:
        first = self.ids.get(chunk_type, 0)
        self.ids[chunk_type] = first + count
        return first


def small_capture() -> CaptureBuilder:
    """A training step on thread 7 of process 42: two launches of one kernel on GPU 0, one of them in a second flush.

    root / train (scope) / cuLaunchKernel / matmul (kernel)
    """
    builder = (
        CaptureBuilder().meta(pid=42, program="train.py").strings("root", "train", "cuLaunchKernel", "matmul", "main")
    )
    builder.rows(
        ChunkType.FRAMES,
        (FrameKind.ROOT, 0, NONE, 0, NONE),
        (FrameKind.SCOPE, 1, NONE, 0, NONE),
        (FrameKind.GPU_API, 2, NONE, 0, NONE),
        (FrameKind.KERNEL, 3, NONE, 0, 0),
    )
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2), (2, 3))
    builder.rows(ChunkType.TRACKS, (1, NONE, NONE, 7, 4))
    builder.rows(ChunkType.SLICES, (1000, 900, 1, 0, 0), (1100, 50, 2, 0, 1))
    builder.rows(ChunkType.METRICS, (1, HOST, 1, 900, 900, 900, 0))
    builder.strings("GPU 0 stream 13")
    builder.rows(ChunkType.TRACKS, (2, 0, 1, 13, 5))
    builder.rows(ChunkType.SLICES, (1300, 200, 3, 1, 1), (1200, 40, 2, 0, 2), (1600, 100, 3, 1, 2))
    builder.rows(ChunkType.METRICS, (3, DEVICE, 1, 200, 200, 200, 0))
    builder.rows(ChunkType.METRICS, (3, DEVICE, 2, 300, 100, 200, 0))
    builder.rows(ChunkType.KERNELS, (3, 32, 0, 1024, 0, 8, 1, 1, 128, 1, 1, 0, 0, 0, 1))
    builder.rows(ChunkType.KERNELS, (3, 32, 0, 1024, 0, 8, 1, 1, 128, 1, 1, 0, 0, 0, 2))
    return builder.meta(exit_code=0).end()
