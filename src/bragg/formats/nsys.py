"""Reading the SQLite database that `nsys export --type sqlite` writes.

Tables exist only for what was traced, and their columns grew over releases, so each is read by the columns that it has.
Threads have the ranges of NVTX and the calls of the CUDA APIs; GPU work is below whatever surrounded its launch.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from bragg.formats.files import open_file
from bragg.formats.format import Format, damaged, unknown_format
from bragg.formats.limits import Limits
from bragg.formats.timelines.call_tree import Frames, Nodes, call_tree
from bragg.formats.timelines.metrics import durations_of_slices, gpu_facts, metrics_of_slices, moved_bytes
from bragg.model import FrameKind, KernelTable, Profile, SliceTable, TrackKind, TrackTable

_BATCH_ROWS = 1 << 14
_BYTES_A_LETTER = 4
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
_CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
_RANGES = "NVTX_EVENTS"
# Values of NVTX_EVENTS.eventType: a mark, a range of a thread, one of the process.
_MARK, _PUSH_POP, _START_END = 34, 59, 60
# Kinds of copies where the database has no ENUM_CUDA_MEMCPY_OPER, which releases before 2021.5 lack.
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "Unified Memory"}
_LAUNCH = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread")
_EXTENTS = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "clusterX", "clusterY", "clusterZ")
_DEVICE_FACTS = {
    "name": "name",
    "smCount": "num_sms",
    "totalMemory": "memory_bytes",
    "clockRate": "clock_khz",
    "busLocation": "pci_bus_id",
}
_ID_MASK = (1 << 24) - 1


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a database.

    Raises:
        BadFile: The file is damaged, or a database of another program.
    """
    # SQLite creates files that are missing, and says less of those that cannot be read.
    with open_file(path):
        pass
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            database = _Database(connection, Limits.of(path))
            if not database.is_of_nsys:
                raise unknown_format(path)
            profile = _Report(database).profile(trace)
        profile.check()
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise damaged(path, error, "Export it again: nsys export --type sqlite") from error
    return profile


class _Database:
    """Tables by the columns that they have."""

    def __init__(self, connection: sqlite3.Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._n_rows = self._n_text_bytes = 0
        connection.text_factory = self._text
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._columns = {str(name): self._columns_of(str(name)) for (name,) in tables}

    def _columns_of(self, table: str) -> set[str]:
        quoted = table.replace('"', '""')
        return {str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{quoted}")')}

    @property
    def is_of_nsys(self) -> bool:
        return "StringIds" in self._columns and bool(
            {_KERNELS, _COPIES, _SETS, *_CALLS, _RANGES, "TARGET_INFO_SESSION_START_TIME"} & self._columns.keys()
        )

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table; None for columns, and no rows for a table, that it does not have."""
        known = self._columns.get(table, set())
        if not known:
            return
        chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        cursor = self._connection.execute(f'SELECT {chosen} FROM "{table}"')
        # A damaged tree of pages may have any number of rows, and many of them the same text.
        while batch := cursor.fetchmany(_BATCH_ROWS):
            self._n_rows += len(batch)
            self._limits.check_rows(self._n_rows)
            yield from batch

    def _text(self, content: bytes) -> str:
        self._n_text_bytes += len(content)
        self._limits.check_memory(_BYTES_A_LETTER * self._n_text_bytes)
        return content.decode(errors="replace")

    def has(self, table: str, column: str) -> bool:
        """Whether the table has this column."""
        return column in self._columns.get(table, ())


class _Report:
    """A database as rows of a profile."""

    def __init__(self, database: _Database) -> None:
        self._database = database
        self._strings = {_int(number): str(text) for number, text in database.rows("StringIds", "id", "value")}
        self._frames = Frames()
        self._tracks: dict[tuple[int, int, int, int, int, str], int] = {}
        self._threads = {
            _int(thread): self._text(name) for thread, name in database.rows("ThreadNames", "globalTid", "nameId")
        }
        # Releases before 2020 recorded one process and do not say of GPU work which.
        self._tells_process = database.has(_KERNELS, "globalPid") or database.has(_COPIES, "globalPid")
        self._launches: Counter[tuple[int, ...]] = Counter()
        self._correlations: dict[tuple[int, int], int] = {}

    def profile(self, trace: bool) -> Profile:
        """The profile of all events."""
        origin_ns = self._origin_ns()
        rows = chain(self._kernels(), self._copies(), self._calls(), self._ranges())
        columns = np.fromiter(chain.from_iterable(rows), np.int64)  # a list of them would take 350 bytes a row
        start_ns, end_ns, frame, track, correlation, size_bytes = columns.reshape(-1, 6).T
        if (end_ns < start_ns).any():
            raise ValueError("an event ends before it starts")
        events = SliceTable(start_ns + origin_ns, end_ns - start_ns, frame, track, correlation)
        tracks = self._track_table()
        tree, node = call_tree(self._frames, Nodes(), tracks, events)
        slices = events.replace(node=node).sorted()
        kernels = np.array([(*launch, count) for launch, count in self._launches.items()], np.int64)
        return Profile(
            {**self._meta(), **gpu_facts(tracks, slices)},
            tree,
            {**metrics_of_slices(tree, tracks, slices), **moved_bytes(len(tree), node, size_bytes)},
            tracks,
            slices if trace else SliceTable.empty(),
            kernels=KernelTable(*kernels.reshape(-1, len(KernelTable.columns())).T),
            durations=durations_of_slices(tree, tracks, slices),
        )

    def _text(self, number: Any) -> str:
        return self._strings.get(_int(number), f"string {number}")

    def _kernels(self) -> Iterator[tuple[int, ...]]:
        place = ("globalPid", "deviceId", "contextId", "streamId", "correlationId")
        names = ("demangledName", "shortName", "mangledName")
        for start, end, *row in self._database.rows(_KERNELS, "start", "end", *place, *names, *_LAUNCH, *_EXTENTS):
            process, device, context, stream, correlation = map(_int, row[:5])
            name = next((number for number in row[5:8] if number is not None), None)
            text = name if isinstance(name, str) else self._text(name)
            frame = self._frames.id(FrameKind.KERNEL, text, device=device)
            self._launches[tuple(map(_int, [frame, *row[8:]]))] += 1
            track = self._stream(process, device, context, stream)
            yield _int(start), _int(end), frame, track, self._correlation(process, correlation), 0

    def _copies(self) -> Iterator[tuple[int, ...]]:
        labels = {
            _int(number): str(label) for number, label in self._database.rows("ENUM_CUDA_MEMCPY_OPER", "id", "label")
        }
        place = ("globalPid", "deviceId", "contextId", "streamId", "correlationId", "bytes")
        for table, verb in ((_COPIES, "Memcpy"), (_SETS, "Memset")):
            for start, end, kind, *row in self._database.rows(table, "start", "end", "copyKind", *place):
                process, device, context, stream, correlation, size_bytes = map(_int, row)
                label = "" if kind is None else labels.get(_int(kind)) or _COPY_KINDS.get(_int(kind), f"kind {kind}")
                frame = self._frames.id(FrameKind.MEMORY, f"{verb} {label}".rstrip(), device=device)
                track = self._stream(process, device, context, stream)
                yield _int(start), _int(end), frame, track, self._correlation(process, correlation), size_bytes

    def _calls(self) -> Iterator[tuple[int, ...]]:
        for table in _CALLS:
            for start, end, thread, correlation, name in self._database.rows(
                table, "start", "end", "globalTid", "correlationId", "nameId"
            ):
                # Runtime calls carry the version that they were introduced with: cudaLaunchKernel_v7000.
                text = self._text(name).partition("_v")[0]
                frame = self._frames.id(FrameKind.GPU_API, text)
                process = _process(_int(thread))
                track = self._thread(_int(thread))
                yield _int(start), _int(end), frame, track, self._correlation(process << 24, _int(correlation)), 0

    def _ranges(self) -> Iterator[tuple[int, ...]]:
        domains = dict(self._domains())
        for start, end, kind, text, number, thread, domain in self._database.rows(
            _RANGES, "start", "end", "eventType", "text", "textId", "globalTid", "domainId"
        ):
            if kind not in (_MARK, _PUSH_POP, _START_END) or (end is None and kind != _MARK):
                continue
            message = str(text) if text is not None else self._text(number)
            name = ": ".join(filter(None, [domains.get((_process(_int(thread)), _int(domain)), ""), message]))
            on_thread = kind == _PUSH_POP
            frame = self._frames.id(FrameKind.SCOPE if on_thread else FrameKind.MARKER, name)
            track = self._thread(_int(thread)) if on_thread else self._process_ranges(_process(_int(thread)))
            yield _int(start), _int(start if end is None else end), frame, track, 0, 0

    def _domains(self) -> Iterator[tuple[tuple[int, int], str]]:
        """Names of NVTX domains: events of type 75, NvtxDomainCreate."""
        for kind, text, number, thread, domain in self._database.rows(
            _RANGES, "eventType", "text", "textId", "globalTid", "domainId"
        ):
            if kind == 75 and domain:
                yield (_process(_int(thread)), _int(domain)), str(text) if text is not None else self._text(number)

    def _correlation(self, process: int, number: int) -> int:
        """An id that is unique among processes, which count their own."""
        key = _process(process) if self._tells_process else 0, number
        return self._correlations.setdefault(key, len(self._correlations) + 1) if number else 0

    def _stream(self, process: int, device: int, context: int, stream: int) -> int:
        return self._track(TrackKind.GPU_STREAM, _process(process), device, context, stream, "")

    def _thread(self, thread: int) -> int:
        name = self._threads.get(thread, "")
        return self._track(TrackKind.HOST_THREAD, _process(thread), -1, 0, thread & _ID_MASK, name)

    def _process_ranges(self, process: int) -> int:
        return self._track(TrackKind.RANGES, process, -1, 0, 0, "")

    def _track(self, *key: Any) -> int:
        return self._tracks.setdefault(key, len(self._tracks))

    def _track_table(self) -> TrackTable:
        columns = zip(*self._tracks, strict=True) if self._tracks else ((),) * len(TrackTable.columns())
        return TrackTable(*columns)

    def _origin_ns(self) -> int:
        """When the session started, ns since 1970; 0 where the database does not tell."""
        starts = self._database.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        return max(_int(next(starts, (0,))[0]), 0)

    def _meta(self) -> dict[str, Any]:
        rows = self._database.rows("TARGET_INFO_GPU", *_DEVICE_FACTS, "computeMajor", "computeMinor")
        devices: list[dict[str, Any]] = []
        for *facts, major, minor in rows:
            named = zip(_DEVICE_FACTS.values(), facts, strict=True)
            device = {ours: fact for ours, fact in named if isinstance(fact, (str, int, float))}
            if "clock_khz" in device:
                device["clock_khz"] = _int(device["clock_khz"]) // 1000
            devices.append({**device, **({} if major is None else {"arch": f"{major}{minor}"})})
        versions = {str(name): value for name, value in self._database.rows("META_DATA_EXPORT", "name", "value")}
        schema = versions.get("EXPORT_SCHEMA_VERSION")
        return {"recorder": "Nsight Systems", "data": "trace", "devices": devices} | (
            {"nsys_schema": schema} if isinstance(schema, (str, int)) else {}
        )


def _process(thread: int) -> int:
    """The process id in a global thread or process id: bits 24 to 47."""
    return thread >> 24 & _ID_MASK


def _int(value: Any) -> int:
    """An integer of a column, 0 for NULL.

    Raises:
        ValueError: It is of another type.
    """
    if value is None:
        return 0
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not an integer")  # noqa: TRY004
    return value


FORMAT = Format(
    ".sqlite", "Nsight Systems, as nsys export --type sqlite writes it", magic=b"SQLite format 3\0", read=read
)
