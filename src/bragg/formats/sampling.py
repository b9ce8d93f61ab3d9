"""Reading the binary files of Python 3.15's own sampling profiler, `python -m profiling.sampling run --binary`.

    header          64 bytes: magic, version, Python, start, interval, counts, where the tables begin, compression
    samples         records, or a stream of zstd: thread, how the stack differs from the one before of that thread
    strings         length and bytes of each
    frames          file, function, line, end of line, columns, bytecode
    statistics      0, 32 or 56 bytes
    footer          32 bytes: how many strings and frames, size of the file

Integers of fixed size have the byte order of the machine that wrote them. Times of samples are by a clock that no other
file knows, so the tree alone is read: each sample stands for the interval.
Source: InternalDocs/profiling_binary_format.md of python/cpython.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from bragg.errors import UsageError
from bragg.formats.files import read_content
from bragg.formats.format import Format, damaged
from bragg.formats.limits import Limits, TooLargeError
from bragg.formats.timelines.call_tree import Frames, Nodes
from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.table import Int64Array

_MAGIC = {b"HCAT": "<", b"TACH": ">"}
_KNOWN_VERSION = 2
_HEADER_BYTES, _FOOTER_BYTES, _STATISTICS_BYTES = 64, 32, (0, 32, 56)
# Offsets of the tables and the compression; the number of samples before them has had four bytes, and has eight.
_PLACES = (("QQI", 40), ("QQI", 36))
_REPEAT, _FULL, _SUFFIX, _POP_PUSH = range(4)
_RECORDS_A_ROW = 8  # Alike records take a byte or two when they are compressed.
_MOST_NS = 1 << 62


def is_sampling(start: bytes) -> bool:
    """Whether a file may be one of this profiler."""
    return start[:4] in _MAGIC and len(start) >= _HEADER_BYTES


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a file.

    Raises:
        BadFile: It is damaged, too large, or of a later version.
        UsageError: It is compressed, and nothing here can read zstd.
    """
    content, limits = read_content(path), Limits.of(path)
    try:
        header = _Header.of(content)
        profile = _profile(content, header, limits)
        profile.check()
    except (ValueError, OverflowError, struct.error) as error:
        raise damaged(path, error, "Record or copy it again") from error
    return profile


@dataclass(frozen=True)
class _Header:
    """What a file says of itself; `order` is the byte order as of `struct`."""

    order: str
    python: str
    interval_us: int
    strings: int
    frames: int
    is_compressed: bool

    @classmethod
    def of(cls, content: bytes) -> _Header:
        order = _MAGIC[content[:4]]
        (version,) = struct.unpack_from(f"{order}I", content, 4)
        python = ".".join(map(str, content[8:11]))
        if not 1 <= version <= _KNOWN_VERSION:
            raise ValueError(f"its format has version {version}, of Python {python}, and {_KNOWN_VERSION} is known")
        (interval_us,) = struct.unpack_from(f"{order}Q", content, 20)
        end = len(content) - _FOOTER_BYTES
        for form, at in _PLACES:
            strings, frames, compression = struct.unpack_from(order + form, content, at)
            if _HEADER_BYTES <= strings <= frames <= end and compression in (0, 1):
                return cls(order, python, interval_us, strings, frames, compression == 1)
        raise ValueError("its tables are not where it says")


class _Varints:
    """Unsigned integers of seven bits a byte, the lowest first."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self.at, self._end = content, at, end

    def next(self) -> int:
        """The next one."""
        value = shift = 0
        while self.at < self._end and shift < 64:
            byte = self._content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("an integer breaks off")

    def bytes(self, n_bytes: int) -> bytes:
        """What follows."""
        begin, self.at = self.at, self.at + n_bytes
        if self.at > self._end:
            raise ValueError("a text breaks off")
        return self._content[begin : self.at]


def _profile(content: bytes, header: _Header, limits: Limits) -> Profile:
    frames, nodes = Frames(), Nodes()
    frame_of = _frames(content, header, frames)
    samples = content[_HEADER_BYTES : header.strings]
    if header.is_compressed:
        samples = _decompressed(samples, limits.content_bytes)
    counts = _counted(samples, header.order, frame_of, nodes, limits)
    tree = nodes.tree(frames.table())
    own = np.zeros(len(tree), np.int64)
    own[list(counts)] = list(counts.values())
    if int(own.sum()) * header.interval_us * 1000 > _MOST_NS:
        raise ValueError(f"its interval is {header.interval_us} us")
    time_ns = own * (header.interval_us * 1000)
    metrics = [
        Metric("host_time", "ns", MetricKind.INCLUSIVE, time_ns),
        Metric("samples", "1", MetricKind.INCLUSIVE, own),
    ]
    meta = {"recorder": "profiling.sampling", "data": "tree", "python": header.python}
    return Profile(meta, tree, {metric.name: metric for metric in metrics})


def _frames(content: bytes, header: _Header, frames: Frames) -> list[int]:
    """The row of each frame of the file."""
    end = len(content) - _FOOTER_BYTES
    n_strings, n_frames, size_bytes = struct.unpack_from(f"{header.order}IIQ", content, end)
    if size_bytes != len(content):
        raise ValueError(f"it has {len(content):,} bytes, and had {size_bytes:,}")
    values = _Varints(content, header.strings, header.frames)
    texts = [values.bytes(values.next()).decode(errors="replace") for _ in range(n_strings)]
    if values.at != header.frames:
        raise ValueError("its texts do not end where its frames begin")
    values = _Varints(content, header.frames, end)
    found = []
    for _ in range(n_frames):
        file, name, line, *_ = [values.next() for _ in range(6)]
        values.bytes(1)
        if max(file, name) >= len(texts):
            raise ValueError(f"there is no text {max(file, name)}")
        number = line >> 1 if not line & 1 else 0  # signed as zigzag; negative is not known
        is_python = texts[file].endswith(".py")
        kind = FrameKind.PYTHON if is_python else FrameKind.NATIVE
        found.append(frames.id(kind, texts[name], texts[file] if is_python else "", number if number < 1 << 31 else 0))
    if end - values.at not in _STATISTICS_BYTES:
        raise ValueError("its frames do not end where its statistics begin")
    return found


def _counted(samples: bytes, order: str, frame_of: list[int], nodes: Nodes, limits: Limits) -> dict[int, int]:
    """How many samples each node has."""
    last_bytes: Int64Array = np.flatnonzero(np.frombuffer(samples, np.uint8) < 0x80)
    thread_of = struct.Struct(f"{order}QIB")
    paths: dict[tuple[int, int], list[int]] = defaultdict(list)  # nodes from the outermost on
    counts: dict[int, int] = defaultdict(int)
    values = _Varints(samples, 0, len(samples))
    n_rows = 0
    while values.at < len(samples):
        thread, interpreter, encoding = thread_of.unpack(values.bytes(thread_of.size))
        path = paths[thread, interpreter]
        n_new, n_samples = 0, 1
        if encoding == _REPEAT:
            n_samples = values.next()
            values.at = _behind_pairs(last_bytes, values.at, n_samples)
        else:
            values.next()  # time since the thread's last sample
            values.bytes(1)  # its state
            if encoding == _SUFFIX:
                _keep(path, values.next())
            elif encoding == _POP_PUSH:
                _keep(path, len(path) - values.next())
            elif encoding == _FULL:
                path.clear()
            else:
                raise ValueError(f"a stack is encoded as {encoding}")
            n_new = values.next()
            limits.check_rows((n_rows + n_new) // _RECORDS_A_ROW)
            for frame in reversed([values.next() for _ in range(n_new)]):
                if frame >= len(frame_of):
                    raise ValueError(f"there is no frame {frame}")
                path.append(nodes.child(path[-1] if path else 0, frame_of[frame]))
        counts[path[-1] if path else 0] += n_samples
        n_rows += 1 + n_new
        limits.check_rows(n_rows // _RECORDS_A_ROW)
    return counts


def _keep(path: list[int], n_kept: int) -> None:
    if not 0 <= n_kept <= len(path):
        raise ValueError(f"a stack keeps {n_kept} of {len(path)} frames")
    del path[n_kept:]


def _behind_pairs(last_bytes: Int64Array, at: int, n_pairs: int) -> int:
    """Where pairs of an integer and a byte below 0x80 end: both end with such a byte."""
    if not n_pairs:
        return at
    last = int(np.searchsorted(last_bytes, at)) + 2 * n_pairs - 1
    if last >= len(last_bytes):
        raise ValueError("repeated samples break off")
    return int(last_bytes[last]) + 1


def _decompressed(packed: bytes, most_bytes: int) -> bytes:
    for name in ("compression.zstd", "backports.zstd"):  # of Python 3.14 and later, and for earlier ones
        try:
            zstd = import_module(name)
        except ImportError:
            continue
        inflater = zstd.ZstdDecompressor()
        try:
            found: bytes = inflater.decompress(packed, most_bytes + 1)
        except zstd.ZstdError as error:
            raise ValueError(f"its samples are damaged: {error}") from error
        if len(found) > most_bytes:
            raise TooLargeError(f"it is over {most_bytes >> 20} MB when decompressed")
        if not inflater.eof:
            raise ValueError("its samples break off")
        return found
    raise UsageError("the file is compressed with zstd", hint="pip install 'bragg[zstd]', or use Python 3.14")


FORMAT = Format(
    ".bin",
    "binary files of Python's profiling.sampling",
    sniff=is_sampling,
    read=read,
)
