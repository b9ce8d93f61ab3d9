"""The chunks of a capture file: found, checked, and cut into columns.

file header   0  "BRAGGCAP"   8  u32 version   12  i32 errno of the write that failed, the last one; 0: none
chunk header  0  u32 "CHNK"   4  u16 type   6  u16 0   8  u32 rows   12  u32 payload_bytes
             16  u32 crc32(payload)   20  u32 crc32(header[0:20])
payload       zero padded to a multiple of 8; columns one after another, each padded, too
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bragg.errors import BadFile
from bragg.formats.files import open_file

FILE_MAGIC = b"BRAGGCAP"
VERSION = 1
_CHUNK_MAGIC = b"CHNK"
_FILE_HEADER_BYTES = 16
_HEADER = struct.Struct("<4sHHIIII")
# A header that is none takes 1 us, the time of the checksum of 4 KB.
_CANDIDATE_BYTES = 1 << 12
_LEAST_SEARCH_BYTES, _SEARCHES = 1 << 28, 16


class ChunkType(IntEnum):
    """What a chunk holds."""

    META = 1
    STRINGS = 2
    FRAMES = 3
    NODES = 4
    METRICS = 5
    TRACKS = 6
    SLICES = 7
    KERNELS = 8
    END = 9
    ATTRIBUTES = 10
    METRIC_NAMES = 11
    VALUES = 12
    DURATIONS = 13
    CODE = 14
    SAMPLES = 15
    CUBIN = 16
    INPUTS = 17
    COUNTERS = 18
    CLOCKS = 19
    IDLE = 20


_U32, _U64, _I64, _F64 = (np.dtype(code) for code in ("<u4", "<u8", "<i8", "<f8"))
_KERNEL_COLUMNS = (
    *("frame", "registers", "static_shared_bytes", "dynamic_shared_bytes", "local_bytes_per_thread"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "cluster_x", "cluster_y", "cluster_z"),
)
# Each of these chunks begins with a u64: the id of its first row, a sequence number, or 0.
LAYOUTS: dict[ChunkType, dict[str, np.dtype[Any]]] = {
    ChunkType.FRAMES: {"kind": _U32, "name": _U32, "file": _U32, "line": _U32, "device": _U32},
    ChunkType.NODES: {"parent": _U32, "frame": _U32},
    ChunkType.METRICS: {
        **dict.fromkeys(("node", "group"), _U32),
        **dict.fromkeys(("count", "total_ns", "min_ns", "max_ns", "bytes"), _U64),
    },
    ChunkType.TRACKS: {"kind": _U32, "device": _U32, "context": _U32, "stream": _U32, "name": _U32},
    ChunkType.SLICES: {"start_ns": _I64, "duration_ns": _U64, "node": _U32, "track": _U32, "correlation": _U32},
    ChunkType.KERNELS: {**dict.fromkeys(_KERNEL_COLUMNS, _U32), "count": _U64},
    ChunkType.ATTRIBUTES: {"frame": _U32, "key": _U32, "value": _U32},
    ChunkType.METRIC_NAMES: {"name": _U32, "unit": _U32, "kind": _U32, "is_float": _U32},
    ChunkType.VALUES: {**dict.fromkeys(("node", "metric", "index", "length"), _U32), "count": _U64, "bits": _I64},
    ChunkType.DURATIONS: {"frame": _U32, "bucket": _U32, "count": _U64, "first_ns": _I64},
    ChunkType.INPUTS: {**dict.fromkeys(("node", "input", "producer", "output"), _U32), "count": _U64},
    ChunkType.CODE: {"cubin": _U64, "function": _U32},
    ChunkType.SAMPLES: {
        **dict.fromkeys(("node", "code", "pc_offset", "reason"), _U32),
        **dict.fromkeys(("count", "exact"), _U64),
    },
    ChunkType.COUNTERS: {"time_ns": _I64, "value": _F64, "track": _U32},
    ChunkType.CLOCKS: {"clock": _U32, "ticks": _I64, "time_ns": _I64},
    ChunkType.IDLE: {
        **dict.fromkeys(("device", "kind", "node"), _U32),
        "start_ns": _I64,
        **dict.fromkeys(("bin_ns", "count", "idle_ns", "longest_ns"), _U64),
    },
}


@dataclass(frozen=True)
class Chunk:
    """One undamaged chunk.

    Attributes:
        type: A `ChunkType`, or a number of a later version.
        rows: Rows of its table.
        payload: Its bytes, a view into the file.
    """

    type: int
    rows: int
    payload: memoryview


@dataclass
class Scan:
    """What a capture file holds.

    Attributes:
        chunks: The undamaged chunks, in order.
        damaged_chunks: Places where the file was unreadable.
        bytes_lost: Bytes skipped there.
        write_error: The errno that ended the writing; 0: none did.
    """

    chunks: list[Chunk] = field(default_factory=list)
    damaged_chunks: int = 0
    bytes_lost: int = 0
    write_error: int = 0


def scan(path: Path) -> Scan:
    """Find all undamaged chunks of a capture file.

    Raises:
        BadFile: The file cannot be read, is not a capture, or is of a later version.
    """
    with open_file(path) as file:
        header = file.read(_FILE_HEADER_BYTES)
        _check_file_header(path, header)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    found = Scan(write_error=int.from_bytes(header[12:16], "little", signed=True))
    position = _FILE_HEADER_BYTES
    search = _Search(content)
    while position < len(content):
        chunk = _chunk_at(content, position)
        if chunk is None:
            after = search.next_chunk(position + 1)
            found.damaged_chunks += 1
            found.bytes_lost += after - position
            position = after
        else:
            found.chunks.append(chunk)
            position += _HEADER.size + _padded(len(chunk.payload))
    return found


def _check_file_header(path: Path, header: bytes) -> None:
    if header[:8] != FILE_MAGIC or len(header) < _FILE_HEADER_BYTES:
        raise BadFile(f"{path} is not a capture, or its first bytes are lost", hint="Give the .part file of a run")
    version = int.from_bytes(header[8:12], "little")
    if version != VERSION:
        raise BadFile(f"{path} has capture version {version}, this bragg reads {VERSION}", hint="Update bragg")


def _chunk_at(content: mmap.mmap, position: int) -> Chunk | None:
    """The chunk that begins here; None when there is none or it is damaged."""
    header = content[position : position + _HEADER.size]
    if len(header) < _HEADER.size or header[:4] != _CHUNK_MAGIC:
        return None
    _, chunk_type, _, rows, payload_bytes, payload_crc, header_crc = _HEADER.unpack(header)
    begin = position + _HEADER.size
    if crc32(header[:20]) != header_crc or begin + _padded(payload_bytes) > len(content):
        return None
    payload = memoryview(content)[begin : begin + payload_bytes]
    return Chunk(chunk_type, rows, payload) if crc32(payload) == payload_crc else None


class _Search:
    """Finds chunks behind damage, with work in proportion to the size of the file.

    Payloads may hold what looks like headers of chunks that reach to the end of the file; to check all of them would
    take the square of its size.
    """

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._left_bytes = _LEAST_SEARCH_BYTES + _SEARCHES * len(content)

    def next_chunk(self, position: int) -> int:
        """Where the next undamaged chunk begins, or the end of the file."""
        while self._left_bytes > 0 and (position := self._content.find(_CHUNK_MAGIC, position)) >= 0:
            if _chunk_at(self._content, position) is not None:
                return position
            self._left_bytes -= _CANDIDATE_BYTES + _payload_bytes(self._content, position)
            position += 1
        return len(self._content)


def _payload_bytes(content: mmap.mmap, position: int) -> int:
    """What a header that was refused made the reader check: nothing where it was damaged itself."""
    header = content[position : position + _HEADER.size]
    if len(header) < _HEADER.size or crc32(header[:20]) != _HEADER.unpack(header)[-1]:
        return 0
    return min(int(_HEADER.unpack(header)[4]), len(content) - position)


def columns(chunk: Chunk, layout: dict[str, np.dtype[Any]]) -> tuple[int, dict[str, NDArray[Any]]] | None:
    """The leading number of a chunk and its columns, [rows] of the types in `layout`: views into the file.

    None: its size does not fit them.
    """
    if len(chunk.payload) != 8 + sum(_padded(chunk.rows * dtype.itemsize) for dtype in layout.values()):
        return None
    return int.from_bytes(chunk.payload[:8], "little"), dict(_cut(chunk, layout))


def _cut(chunk: Chunk, layout: dict[str, np.dtype[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:
    offset = 8
    for name, dtype in layout.items():
        yield name, np.frombuffer(chunk.payload, dtype, chunk.rows, offset)
        offset += _padded(chunk.rows * dtype.itemsize)


def strings(chunk: Chunk) -> tuple[int, list[str]] | None:
    """First id and the strings of a STRINGS chunk; None when its size does not fit its rows."""
    start = 8 + _padded(chunk.rows * 4)
    if len(chunk.payload) < start:
        return None
    lengths = np.frombuffer(chunk.payload, _U32, chunk.rows, 8)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    text = bytes(chunk.payload[start:])
    if (ends[-1] if ends else 0) > len(text):
        return None
    begins = [0, *ends[:-1]]
    found = [text[begin:end].decode("utf-8", "replace") for begin, end in zip(begins, ends, strict=bool(ends))]
    return int.from_bytes(chunk.payload[:8], "little"), found


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // 8) * 8
