"""The `.bragg` file: a zip archive of `meta.json` and numpy columns.

    meta.json               version, meta of the run, metrics, findings, names of sources, rows of each slice block
    frames/*  nodes/*  tracks/*  counters/*  kernels/*  durations/*  inputs/*  idle/*
                            a `.npy` for each column, strings as `.json`
    metrics/<name>.npy      own values; counted/<name>.npy: 1 for nodes that have one even if it is 0
    slices/<block>/*.npy    uint8 [itemsize, rows]: the bytes of each value, lowest first, see `timelines.columns`
    sources/<number>.txt    UTF-8
    ranks/*                 of a rank of a job what comparing it with others needs, see `job.summaries`

Readers ignore members that they do not know. A change that older readers would misread raises the major version.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bragg.errors import BadFile
from bragg.formats.encodings.deep_json import memory_bytes
from bragg.formats.encodings.npy import ARCHIVE_DAMAGE, decode, encode
from bragg.formats.files import new_file, open_file
from bragg.formats.format import Format, damaged, unknown_format
from bragg.formats.limits import Limits, check_depth
from bragg.formats.timelines.columns import pack, unpack
from bragg.model import (
    CallTree,
    Combine,
    CounterTable,
    DurationTable,
    Finding,
    FrameTable,
    IdleTable,
    InputTable,
    KernelTable,
    Metric,
    MetricKind,
    Profile,
    SliceTable,
    TrackTable,
)
from bragg.model.table import Table
from bragg.registry import ANALYSES

MAJOR_VERSION = 1
MINOR_VERSION = 5
_VERSION = (MAJOR_VERSION, MINOR_VERSION)
# 510,000 kernels of a replayed graph: 0.18 s and 1.95 bytes each; level 6 takes 0.38 s for 1.75 bytes.
_LEVEL = 1
_BLOCK_ROWS = 1 << 18
# Deflate cannot shrink anything further.
_MAX_RATIO = 1032
# Of an array.
_MAX_HEADER_BYTES = 256
# As five columns, once more in one table, and once more in order.
_SLICE_BYTES = 104
_TableT = TypeVar("_TableT", bound=Table)


def write(
    profile: Profile,
    path: Path,
    *,
    slices: Iterable[SliceTable] | None = None,
    summarized: Profile | None = None,
) -> None:
    """Write a profile; the file appears under its name when it is complete.

    Args:
        profile: The profile.
        path: Where to write it.
        slices: Blocks of slices to write in place of those of the profile, so that a long trace need not fit in memory.
        summarized: The profile with the slices that the summary of a rank is made of; None: `profile` itself, or with
            `slices` none.

    Raises:
        BadFile: The file cannot be written.
    """
    blocks = _blocks_of(profile.slices) if slices is None else slices
    if summarized is None and slices is None:
        summarized = profile
    is_rank = profile.run.rank is not None and not profile.run.is_merged
    summary = _summary(summarized) if is_rank and summarized is not None else {}
    with new_file(path) as file, ZipFile(file, "w") as archive:
        writer = _Writer(archive)
        writer.table("frames", profile.tree.frames)
        writer.array("nodes/parent", profile.tree.parent)
        writer.array("nodes/frame", profile.tree.frame)
        for metric in profile.metrics.values():
            writer.array(_metric_member(metric.name), metric.own)
            if metric.counted is not None:
                writer.array(_metric_member(metric.name, "counted"), metric.counted.view(np.uint8))
        writer.table("tracks", profile.tracks)
        writer.table("counters", profile.counters)
        writer.table("kernels", profile.kernels)
        writer.table("durations", profile.durations)
        writer.table("inputs", profile.inputs)
        writer.table("idle", profile.idle)
        for number, text in enumerate(profile.sources.values()):
            writer.member(f"sources/{number}.txt", text.encode())
        for name, content in summary.items():
            writer.member(name, content)
        block_rows = [writer.slices(number, block) for number, block in enumerate(blocks)]
        writer.json("meta", _header(profile, block_rows))


def _summary(profile: Profile) -> dict[str, bytes]:
    """What a file carries of a rank, by the names of its members."""
    from bragg.formats.job.summaries import members_of  # 4 ms, which readers of a profile do not need

    return members_of(ANALYSES["rank_summary"](profile))


def _metric_member(name: str, folder: str = "metrics") -> str:
    """Programs name metrics as they like; members are also files of whoever unpacks the archive."""
    return f"{folder}/{quote(name, safe=' ()[]')}"


def _blocks_of(slices: SliceTable) -> Iterator[SliceTable]:
    for begin in range(0, len(slices), _BLOCK_ROWS):
        yield slices.take(np.arange(begin, min(begin + _BLOCK_ROWS, len(slices))))


def _header(profile: Profile, block_rows: list[int]) -> dict[str, Any]:
    return {
        "format": "bragg",
        "version": [MAJOR_VERSION, MINOR_VERSION],
        "meta": profile.meta,
        "metrics": [
            {
                "name": item.name,
                "unit": item.unit,
                "kind": item.kind.value,
                "combine": item.combine.value,
                **({} if item.counted is None else {"counted": True}),
            }
            for item in profile.metrics.values()
        ],
        "findings": [item.to_json() for item in profile.carried],
        "sources": list(profile.sources),
        "slice_blocks": block_rows,
    }


class _Writer:
    """Members of an archive; equal profiles give equal bytes."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive

    def member(self, name: str, content: bytes) -> None:
        info = ZipInfo(name)  # dated 1980
        info.compress_type = ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self._archive.writestr(info, content, compresslevel=_LEVEL)

    def json(self, name: str, value: Any) -> None:
        self.member(f"{name}.json", json.dumps(value, separators=(",", ":")).encode())

    def array(self, name: str, values: NDArray[Any]) -> None:
        self.member(f"{name}.npy", encode(values))

    def table(self, name: str, table: Table) -> None:
        for column in table.columns():
            values = getattr(table, column)
            write_column = self.json if isinstance(values, list) else self.array
            write_column(f"{name}/{column}", values)

    def slices(self, number: int, block: SliceTable) -> int:
        for name, planes in pack(block.sorted()).items():
            self.array(f"slices/{number}/{name}", planes)
        return len(block)


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a profile.

    Blocks of slices that are damaged are left out, and `meta["lost"]` says how many; any other damage makes the file
    unusable.

    Args:
        path: The file.
        trace: False leaves the slices out.

    Raises:
        BadFile: The file is damaged, or of a later version.
    """
    with open_file(path) as file:
        try:
            with ZipFile(file) as archive:
                if path.suffix != ".bragg" and "meta.json" not in archive.namelist():
                    raise unknown_format(path)
                profile = _Reader(archive, Limits.of(path)).checked_profile(trace)
        except ARCHIVE_DAMAGE as error:
            raise damaged(path, error, "Copy it again, or recover it from the .part file") from error
    return profile


def read_meta(path: Path) -> dict[str, Any]:
    """`Profile.meta` alone, without the tables.

    Raises:
        BadFile: As for `read`.
    """
    with open_file(path) as file:
        try:
            with ZipFile(file) as archive:
                return _Reader(archive, Limits.of(path)).meta
        except ARCHIVE_DAMAGE as error:
            raise damaged(path, error, "Copy it again, or leave it out") from error


class _Reader:
    """Members of an archive.

    Raises:
        ValueError, and the others of `ARCHIVE_DAMAGE`: A member is missing or damaged.
    """

    def __init__(self, archive: ZipFile, limits: Limits) -> None:
        self._archive = archive
        self._limits = limits
        self._read_bytes = 0
        self._header = self.json("meta")
        self.version = tuple(self._header["version"])
        self._is_newer = self.version > _VERSION
        if self.version[0] > MAJOR_VERSION:
            raise BadFile(
                f"the file has version {self.version[0]}, this bragg reads up to {MAJOR_VERSION}", hint="Update bragg"
            )

    @property
    def meta(self) -> dict[str, Any]:
        return dict(self._header["meta"])

    def checked_profile(self, trace: bool) -> Profile:
        try:
            profile = self._profile(trace)
            profile.check()
        except ValueError as error:
            if not self._is_newer:
                raise
            message = f"the file has version {_text(self.version)}, this bragg reads up to {_text(_VERSION)}: {error}"
            raise BadFile(message, hint="Update bragg") from error
        return profile

    def _profile(self, trace: bool) -> Profile:
        header = self._header
        meta = self.meta
        frames = self.table("frames", FrameTable)
        tree = CallTree(self.array("nodes/parent", np.int32), self.array("nodes/frame", np.int32), frames)
        tree.check()
        check_depth(tree)
        return Profile(
            meta=meta,
            tree=tree,
            metrics=self._metrics(header["metrics"]),
            tracks=self.table("tracks", TrackTable, () if self.version >= (1, 3) else ("rank", "host")),
            slices=self._slices(meta) if trace else SliceTable.empty(),
            counters=self.table("counters", CounterTable),
            kernels=self.table("kernels", KernelTable),
            durations=self.table("durations", DurationTable) if self.version >= (1, 1) else DurationTable.empty(),
            inputs=self.table("inputs", InputTable) if self.version >= (1, 2) else InputTable.empty(),
            idle=self._idle() if self.version >= (1, 4) else IdleTable.empty(),
            carried=[Finding.from_json(item) for item in header["findings"]],
            sources={
                name: self.member(f"sources/{number}.txt").decode()
                for number, name in enumerate(_texts(header["sources"]))
            },
        )

    def _idle(self) -> IdleTable:
        idle = self.table("idle", IdleTable)
        return idle.of_known_kinds() if self._is_newer else idle

    def _metrics(self, items: list[dict[str, Any]]) -> dict[str, Metric]:
        names = set(_texts([item["name"] for item in items]))
        if len(names) < len(items) or len(items) > len(self._archive.NameToInfo):
            raise ValueError("a metric is there twice")
        return {item["name"]: self._metric(item) for item in items}

    def _metric(self, item: dict[str, Any]) -> Metric:
        kind, combine = MetricKind(item["kind"]), Combine(item["combine"])
        if not isinstance(item["unit"], str):
            raise TypeError("the unit of a metric is not a text")
        own = self.array(_metric_member(item["name"]), np.int64, np.float64)
        counted = None
        if item.get("counted"):
            counted = self.array(_metric_member(item["name"], "counted"), np.uint8) != 0
        return Metric(item["name"], item["unit"], kind, own, combine, counted)

    def _slices(self, meta: dict[str, Any]) -> SliceTable:
        block_rows = self._header["slice_blocks"]
        if len(block_rows) > len(self._archive.NameToInfo):
            raise ValueError("there are more blocks of slices than members")
        self._take(_SLICE_BYTES * sum(block_rows))
        blocks = [self._slice_block(number, rows) for number, rows in enumerate(block_rows)]
        lost = [rows for rows, block in zip(block_rows, blocks, strict=True) if block is None]
        if lost:
            meta["lost"] = {"slice_blocks": len(lost), "slices": sum(lost)}
        return SliceTable.concatenate([block for block in blocks if block is not None]).sorted()

    def _slice_block(self, number: int, rows: int) -> SliceTable | None:
        """A block with so many rows; None: it is damaged."""
        try:
            for name in SliceTable.columns():
                if self._info(f"slices/{number}/{name}.npy").file_size > _MAX_HEADER_BYTES + 8 * rows:
                    return None
            return unpack({name: self.array(f"slices/{number}/{name}", np.uint8) for name in SliceTable.columns()})
        except ARCHIVE_DAMAGE:
            return None

    def member(self, name: str) -> bytes:
        """The content of a member.

        Raises:
            ValueError: Its size cannot be, or is too much together with what was read before.
        """
        info = self._info(name)
        self._take(info.file_size)
        # zipfile reads no more than the directory says.
        return self._archive.read(info)

    def _take(self, n_bytes: int) -> None:
        self._read_bytes += n_bytes
        self._limits.check_memory(self._read_bytes)

    def _info(self, name: str) -> ZipInfo:
        info = self._archive.getinfo(name)
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in an unknown way")
        if info.compress_size > self._limits.file_bytes or info.file_size > _MAX_RATIO * info.compress_size:
            raise ValueError(f"{name} is larger than it can be")
        return info

    def json(self, name: str, separator: bytes = b",") -> Any:
        content = self.member(f"{name}.json")
        self._take(memory_bytes(content, separator))
        return json.loads(content)

    def _texts(self, name: str) -> list[str]:
        texts = self.json(name, b'","')
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{name} is not a list of strings")
        return texts

    def array(self, name: str, *dtypes: DTypeLike) -> NDArray[Any]:
        """A column of one of these types."""
        return decode(self.member(f"{name}.npy"), dtypes)

    def table(self, name: str, table: type[_TableT], missing: Collection[str] = ()) -> _TableT:
        """A table; columns that older files lack have their defaults."""
        columns: dict[str, Any] = {
            column: self._texts(f"{name}/{column}") if dtype is None else self.array(f"{name}/{column}", dtype)
            for column, dtype in table.columns().items()
            if column not in missing
        }
        return table(**columns)


FORMAT = Format(".bragg", "profile of bragg, all tables", magic=b"PK\x03\x04", read=read, write=write)


def _texts(names: list[Any]) -> list[str]:
    if not all(isinstance(name, str) for name in names):
        raise TypeError("a name is not a text")
    return names


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
