"""Chunks of a capture, in file order, as whole tables: what the recorder knew when it last wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.captured.chunks import LAYOUTS, Chunk, ChunkType, Scan, columns, strings
from bragg.model import FrameKind, TrackKind
from bragg.model.durations import MAX_BUCKET

Columns = dict[str, NDArray[Any]]
NO_REFERENCE = 0xFFFFFFFF
_ROWS_AT_ONCE = 1 << 20


class MetricGroup(IntEnum):
    """Where the rows of METRICS come from."""

    DEVICE = 1
    HOST = 2
    SAMPLE = 3
    MARKER = 4
    WAIT = 5
    THREAD = 6


@dataclass
class IdColumns:
    """A table whose rows are numbered over the whole file.

    Attributes:
        parts: The rows of each chunk.
        firsts: Id of the first row of each chunk; ids between the chunks were lost.
        end: Id after the last row.
        n_missing: Ids between the chunks.
    """

    parts: list[Columns] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    end: int = 0
    n_missing: int = 0

    def fits(self, first_id: int, max_lost: int) -> bool:
        """Whether these ids can follow: they do not repeat, and skip no more rows than can have been lost."""
        return self.end <= first_id <= self.end + max_lost - self.n_missing

    def add(self, first_id: int, rows: int, part: Columns) -> None:
        """Append a chunk."""
        self.parts.append(part)
        self.firsts.append(first_id)
        self.n_missing += first_id - self.end
        self.end = first_id + rows

    def column(self, name: str) -> NDArray[np.int64]:
        """One column [end], a row for each id; -1 stands for no reference and in lost rows."""
        values = np.full(self.end, -1, np.int64)
        for first, part in zip(self.firsts, self.parts, strict=True):
            read = part[name].astype(np.int64)
            values[first : first + len(read)] = np.where(read == NO_REFERENCE, -1, read)
        return values


@dataclass
class CaptureTables:
    """The tables of a capture; references between them may dangle where chunks were lost.

    Attributes:
        meta: All META chunks, later ones over earlier ones.
        strings: By id; a lost one is missing.
        metrics: Rows of METRICS in file order; for one node and group the last counts.
        kernels: Rows of KERNELS in file order; for one configuration the last counts.
        slices: Columns of each SLICES chunk, views into the file.
        attributes: Columns of each ATTRIBUTES chunk.
        values: Rows of VALUES in file order; for one node, metric and element the last counts.
        durations: Rows of DURATIONS in file order; for one frame and bucket the last counts.
        inputs: Rows of INPUTS in file order; for one node, input, producer and output the last counts.
        idle: Rows of IDLE in file order; of the widest bins, for one device, kind, node and bin, the last counts.
        codes: Functions that were sampled.
        samples: Rows of SAMPLES in file order; for one node, function, instruction and reason the last counts.
        cubins: Machine code by CUPTI's checksum, of what was sampled.
        counters: Columns of each COUNTERS chunk.
        clocks: Columns of each CLOCKS chunk.
        is_complete: The session was stopped and everything was written.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)
    frames: IdColumns = field(default_factory=IdColumns)
    nodes: IdColumns = field(default_factory=IdColumns)
    tracks: IdColumns = field(default_factory=IdColumns)
    metrics: list[Columns] = field(default_factory=list)
    kernels: list[Columns] = field(default_factory=list)
    slices: list[Columns] = field(default_factory=list)
    attributes: list[Columns] = field(default_factory=list)
    metric_names: IdColumns = field(default_factory=IdColumns)
    values: list[Columns] = field(default_factory=list)
    durations: list[Columns] = field(default_factory=list)
    inputs: list[Columns] = field(default_factory=list)
    idle: list[Columns] = field(default_factory=list)
    codes: IdColumns = field(default_factory=IdColumns)
    samples: list[Columns] = field(default_factory=list)
    cubins: dict[int, bytes] = field(default_factory=dict)
    counters: list[Columns] = field(default_factory=list)
    clocks: list[Columns] = field(default_factory=list)
    is_complete: bool = False


def rows_of(chunk_type: ChunkType, count: int, **values: Any) -> Columns:
    """Rows of a chunk; columns that are not given refer to nothing."""
    return {
        name: np.broadcast_to(np.asarray(values.get(name, NO_REFERENCE)), count).astype(dtype)
        for name, dtype in LAYOUTS[chunk_type].items()
    }


def last_rows(parts: list[Columns], chunk_type: ChunkType, key: tuple[str, ...]) -> Columns:
    """The rows of cumulative chunks, of rows with equal keys only the last one; by first appearance of their keys."""
    kept = [{name: np.empty(0, dtype) for name, dtype in LAYOUTS[chunk_type].items()}]
    new_rows = 0
    for part in parts:
        kept.append(part)
        new_rows += len(part[key[0]])
        # A long trace repeats its rows at every flush: they may not pile up in memory.
        if new_rows >= _ROWS_AT_ONCE:
            kept, new_rows = [_last_of(kept, key)], 0
    return _last_of(kept, key)


def _last_of(parts: list[Columns], key: tuple[str, ...]) -> Columns:
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    keys = np.stack([rows[name] for name in key], axis=1)
    # Keys as bytes of one length: a dictionary of them takes a tenth of sorting rows of several columns.
    texts = keys.view(f"S{keys.itemsize * len(key)}").reshape(-1).tolist()
    last = np.array(list(dict(zip(texts, range(len(texts)), strict=True)).values()), np.int64)
    return {name: values[last] for name, values in rows.items()}


def collect(scan: Scan) -> CaptureTables:
    """The tables of a scanned capture; chunks that contradict the format are counted as damaged in `scan`."""
    tables = CaptureTables()
    for chunk in scan.chunks:
        # A row takes at least four bytes, so a gap between ids cannot be longer than what was lost.
        if not _add(tables, chunk, max_lost=scan.bytes_lost // 4):
            scan.damaged_chunks += 1
            scan.bytes_lost += len(chunk.payload)
    return tables


def _add(tables: CaptureTables, chunk: Chunk, max_lost: int) -> bool:
    """Take one chunk in; False when it contradicts the format."""
    if chunk.type == ChunkType.META:
        return _add_meta(tables, chunk)
    if chunk.type == ChunkType.STRINGS:
        return _add_strings(tables, chunk)
    if chunk.type == ChunkType.CUBIN:
        tables.cubins[int.from_bytes(chunk.payload[:8], "little")] = bytes(chunk.payload[8:])
        return len(chunk.payload) > 8
    if chunk.type == ChunkType.END:
        tables.is_complete = True
        return True
    if chunk.type not in LAYOUTS:
        return False
    found = columns(chunk, LAYOUTS[ChunkType(chunk.type)])
    if found is None:
        return False
    return _add_rows(tables, ChunkType(chunk.type), chunk.rows, *found, max_lost)


def _add_rows(
    tables: CaptureTables, chunk_type: ChunkType, rows: int, first_id: int, part: Columns, max_lost: int
) -> bool:
    numbered = {
        ChunkType.FRAMES: tables.frames,
        ChunkType.NODES: tables.nodes,
        ChunkType.TRACKS: tables.tracks,
        ChunkType.METRIC_NAMES: tables.metric_names,
        ChunkType.CODE: tables.codes,
    }
    table = numbered.get(chunk_type)
    if table is not None and not table.fits(first_id, max_lost):
        return False
    if not _is_plausible(chunk_type, first_id, part):
        return False
    if table is not None:
        table.add(first_id, rows, part)
        return True
    listed = {
        ChunkType.METRICS: tables.metrics,
        ChunkType.KERNELS: tables.kernels,
        ChunkType.SLICES: tables.slices,
        ChunkType.ATTRIBUTES: tables.attributes,
        ChunkType.VALUES: tables.values,
        ChunkType.DURATIONS: tables.durations,
        ChunkType.INPUTS: tables.inputs,
        ChunkType.IDLE: tables.idle,
        ChunkType.SAMPLES: tables.samples,
        ChunkType.COUNTERS: tables.counters,
        ChunkType.CLOCKS: tables.clocks,
    }
    listed[chunk_type].append(part)
    return True


def _is_plausible(chunk_type: ChunkType, first_id: int, part: Columns) -> bool:
    """Whether the values of a chunk mean something."""
    if chunk_type == ChunkType.CODE:
        return True  # A checksum has all 64 bits.
    if any(
        (values >= 2**63).any() for values in part.values() if values.dtype.itemsize == 8 and values.dtype.kind == "u"
    ):
        return False
    if chunk_type == ChunkType.FRAMES:
        return bool((part["kind"] <= max(FrameKind)).all())
    if chunk_type == ChunkType.METRICS:
        return bool(((part["group"] >= min(MetricGroup)) & (part["group"] <= max(MetricGroup))).all())
    if chunk_type == ChunkType.TRACKS:
        return bool(((part["kind"] >= min(TrackKind)) & (part["kind"] <= max(TrackKind))).all())
    if chunk_type == ChunkType.SLICES:
        # Both are below 2^63, so their sum cannot wrap in 64 bits.
        ends = part["start_ns"].astype(np.uint64) + part["duration_ns"]
        return bool(((part["start_ns"] >= 0) & (ends < 2**63)).all())
    if chunk_type == ChunkType.METRIC_NAMES:
        return bool((part["kind"] <= 2).all())
    if chunk_type == ChunkType.VALUES:
        return bool(((part["index"] < part["length"]) | (part["index"] == 0)).all())
    if chunk_type == ChunkType.DURATIONS:
        return bool(((part["bucket"] <= MAX_BUCKET) & (part["first_ns"] >= 0)).all())
    if chunk_type == ChunkType.COUNTERS:
        return bool((part["time_ns"] >= 0).all())
    if chunk_type == ChunkType.CLOCKS:
        return bool(((part["ticks"] >= 0) & (part["time_ns"] >= 0)).all())
    if chunk_type == ChunkType.INPUTS:
        return bool(((part["input"] < 2**31) & (part["output"] < 2**31)).all())
    if chunk_type == ChunkType.SAMPLES:
        return bool((part["exact"] <= part["count"]).all())
    if chunk_type == ChunkType.NODES:
        ids = np.arange(len(part["parent"]), dtype=np.int64) + first_id
        return bool(((part["parent"] < ids) | ((ids == 0) & (part["parent"] == NO_REFERENCE))).all())
    return True


def _add_meta(tables: CaptureTables, chunk: Chunk) -> bool:
    try:
        update = json.loads(bytes(chunk.payload))
    except (ValueError, RecursionError):
        return False
    if not isinstance(update, dict):
        return False
    tables.meta.update(update)
    return True


def _add_strings(tables: CaptureTables, chunk: Chunk) -> bool:
    found = strings(chunk)
    if found is None:
        return False
    first_id, texts = found
    tables.strings.update(enumerate(texts, first_id))
    return True
