"""Files of Python 3.15's sampling profiler, written after its description of the format."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

STRINGS = ("train.py", "main", "step", "~", "<GC>", "/lib/loader.py", "load")
# Rows of STRINGS for file and function, and the line.
FRAMES = ((0, 1, 9), (0, 2, 4), (3, 4, -1), (5, 6, 300))
MAIN, STEP, COLLECTOR, LOAD = range(len(FRAMES))
INTERVAL_US = 1000


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def zigzag(value: int) -> bytes:
    return varint(2 * value if value >= 0 else -2 * value - 1)


def repeat(thread: int, n_samples: int, order: str = "<") -> bytes:
    """The stack of before again; times of one to three bytes."""
    pairs = b"".join(varint(100 << (row % 3 * 7)) + b"\3" for row in range(n_samples))
    return struct.pack(f"{order}QIB", thread, 0, 0) + varint(n_samples) + pairs


def changed(thread: int, encoding: int, n_kept: int | None, new: Sequence[int], order: str = "<") -> bytes:
    """A stack: whole (1), or with `n_kept` frames shared (2) or popped (3); new frames, the innermost first."""
    head = struct.pack(f"{order}QIB", thread, 0, encoding) + varint(1000) + b"\1"
    return head + (b"" if n_kept is None else varint(n_kept)) + varint(len(new)) + b"".join(map(varint, new))


def samples(order: str = "<") -> bytes:
    """Two threads: 5 samples of main > step, 1 of main > step > collector, 3 of main > load, 2 of load alone."""
    return b"".join(
        (
            changed(1 << 40, 1, None, [STEP, MAIN], order),
            changed(7, 1, None, [LOAD], order),
            repeat(1 << 40, 4, order),
            changed(1 << 40, 2, 2, [COLLECTOR], order),
            repeat(7, 1, order),
            changed(1 << 40, 3, 2, [LOAD], order),
            repeat(1 << 40, 2, order),
        )
    )


def profiling_file(
    content: bytes,
    *,
    order: str = "<",
    pack: Callable[[bytes], bytes] | None = None,
    is_wide: bool = True,
    n_statistics: int = 56,
    version: int = 1,
) -> bytes:
    """A file with these records.

    Args:
        content: The records.
        order: Byte order, as of struct.
        pack: Compresses them.
        is_wide: Whether the number of samples has eight bytes.
        n_statistics: Bytes of statistics.
        version: Of the format.
    """
    packed = pack(content) if pack else content
    strings = b"".join(varint(len(text.encode())) + text.encode() for text in STRINGS)
    frames = b"".join(
        varint(file) + varint(name) + zigzag(line) + zigzag(0) + zigzag(4) + zigzag(70) + b"\xff"
        for file, name, line in FRAMES
    )
    at = 64 + len(packed)
    counts = struct.pack(f"{order}QI" if is_wide else f"{order}II", 11, 2)
    header = struct.pack(f"{order}II4BQQ", 0x54414348, version, 3, 15, 0, 0, 5_000_000, INTERVAL_US) + counts
    header += struct.pack(f"{order}QQI", at, at + len(strings), int(pack is not None))
    body = packed + strings + frames + bytes(n_statistics)
    size_bytes = 64 + len(body) + 32
    footer = struct.pack(f"{order}IIQ", len(STRINGS), len(FRAMES), size_bytes) + bytes(16)
    return header.ljust(64, b"\0") + body + footer
