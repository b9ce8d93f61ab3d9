"""The summary of a rank within its `.bragg` file, so that a thousand files need not be read whole.

ranks/facts.json        rank, host, device, wall_ns, is_whole, is_on_cpus, is_cut_short, clock, ways, version
ranks/calls.json        columns of the calls of collectives
ranks/collectives.npy   int64 [columns, rows], those of `CollectiveTable`, each as differences
ranks/paths.npy         int64 [columns, rows], those of `PathTable`
ranks/labels.json       a text for each path
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from bragg.formats.encodings.npy import ARCHIVE_DAMAGE, decode, encode
from bragg.formats.files import open_file
from bragg.formats.format import damaged
from bragg.model.facts import Facts
from bragg.model.ranks.clock import RankClock
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveTable, PathTable, RankSummary
from bragg.model.table import Table

_VERSION = 1
_WAY = ("group", "operation", "size_bytes", "way")
_FACTS, _CALLS, _LABELS = "ranks/facts.json", "ranks/calls.json", "ranks/labels.json"
_COLLECTIVES, _PATHS = "ranks/collectives.npy", "ranks/paths.npy"
# Steps without a collective are those that accumulate gradients, and the first ones.
_MAX_STEPS_EACH, _MAX_STEPS = 64, 4096
_HINT = "Copy it again, or recover it from the .part file"
_MAX_BYTES = 1 << 28  # of one member: 3 million collectives
_TableT = TypeVar("_TableT", bound=Table)


def members_of(summary: RankSummary) -> dict[str, bytes]:
    """The members of the archive that hold a summary, by name."""
    facts = {
        "version": _VERSION,
        "rank": summary.rank,
        "host": summary.host,
        "device": summary.device,
        "wall_ns": summary.wall_ns,
        "is_whole": summary.is_whole,
        "is_on_cpus": summary.is_on_cpus,
        "is_cut_short": summary.is_cut_short,
        "clock": summary.clock.to_json(),
        "ways": [dict(zip(_WAY, (*key, way), strict=True)) for key, way in summary.ways.items()],
    }
    calls = {name: list(getattr(summary.calls, name)) for name in CollectiveCallTable.columns()}
    calls |= {name: getattr(summary.calls, name).tolist() for name in ("size_bytes", "path")}
    # Differences of what grows are small numbers, which deflate shrinks to a third.
    return {
        _FACTS: _json(facts),
        _CALLS: _json(calls),
        _COLLECTIVES: encode(np.diff(_matrix(summary.collectives()), axis=1, prepend=0)),
        _PATHS: encode(_matrix(summary.paths())),
        _LABELS: _json(summary.labels()),
    }


def read_summary(path: Path) -> RankSummary | None:
    """The summary of a file; None: it has none, because it is another format or no rank wrote it.

    Raises:
        BadFile: The file cannot be read, or its summary is damaged.
    """
    with open_file(path) as file:
        if file.read(4) != b"PK\x03\x04":
            return None
        try:
            with ZipFile(file) as archive:
                return _read(archive, path) if _FACTS in archive.NameToInfo else None
        except ARCHIVE_DAMAGE as error:
            raise damaged(path, error, _HINT) from error


def _read(archive: ZipFile, path: Path) -> RankSummary | None:
    facts = Facts(json.loads(_member(archive, _FACTS)))
    if facts.integer("version") != _VERSION:
        return None
    calls = json.loads(_member(archive, _CALLS))
    paths = _table(PathTable, decode(_member(archive, _PATHS), (np.int64,)))
    collectives = np.cumsum(decode(_member(archive, _COLLECTIVES), (np.int64,)), axis=1)
    table = _table(CollectiveTable, collectives)
    known = CollectiveCallTable(**{name: calls[name] for name in CollectiveCallTable.columns()})
    _check(known, table)
    return RankSummary(
        rank=facts.count("rank"),
        host=facts.text("host"),
        device=facts.text("device"),
        wall_ns=facts.count("wall_ns"),
        is_whole=not facts.is_false("is_whole"),
        is_on_cpus=facts.is_true("is_on_cpus"),
        is_cut_short=not facts.is_false("is_cut_short"),
        calls=known,
        collectives=lambda: table,
        paths=_Paths(path, paths),
        labels=partial(_labels, path, len(paths)),
        clock=RankClock.from_json(facts.table("clock").values()),
        ways={
            (each.text("group"), each.text("operation"), each.integer("size_bytes") or -1): each.text("way")
            for each in map(Facts, facts.rows("ways"))
        },
    )


def _check(calls: CollectiveCallTable, table: CollectiveTable) -> None:
    """What is beyond its limits would make large tables of a small file."""
    if not all(isinstance(text, str) for text in (*calls.group, *calls.operation, *calls.dtype)):
        raise ValueError("a call has no name")
    if not len(table):
        return
    if not 0 <= table.call.min() <= table.call.max() < len(calls):
        raise ValueError("a collective is of no call")
    if not 0 <= table.sequence.min() <= table.sequence.max() < len(table):
        raise ValueError("a collective has no place in its group")
    if not -1 <= table.step.min() <= table.step.max() < _MAX_STEPS_EACH * len(table) + _MAX_STEPS:
        raise ValueError("a collective is of no step")


class _Paths:
    """The call paths of a file: read with it for the first caller, who sums them; for others anew: they are large."""

    def __init__(self, path: Path, first: PathTable) -> None:
        self._path = path
        self._first: PathTable | None = first

    def __call__(self) -> PathTable:
        first, self._first = self._first, None
        if first is not None:
            return first
        with _archive(self._path) as archive:
            return _table(PathTable, decode(_member(archive, _PATHS), (np.int64,)))


def _labels(path: Path, n_paths: int) -> list[str]:
    with _archive(path) as archive:
        labels = json.loads(_member(archive, _LABELS))
        if not isinstance(labels, list) or len(labels) != n_paths:
            raise ValueError(f"it has no text for each of {n_paths:,} call paths")
        return [str(label) for label in labels]


@contextmanager
def _archive(path: Path) -> Iterator[ZipFile]:
    with open_file(path) as file:
        try:
            with ZipFile(file) as archive:
                yield archive
        except ARCHIVE_DAMAGE as error:
            raise damaged(path, error, _HINT) from error


def _member(archive: ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _MAX_BYTES:
        raise ValueError(f"{name} is larger than it can be")
    return archive.read(name)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _matrix(table: Table) -> NDArray[np.int64]:
    columns = [np.asarray(getattr(table, name), np.int64) for name in table.columns()]
    return np.stack(columns) if len(table) else np.zeros((len(columns), 0), np.int64)


def _table(table: type[_TableT], matrix: NDArray[np.int64]) -> _TableT:
    return table(**dict(zip(table.columns(), matrix, strict=True)))
