"""The summaries of ranks as Parquet, for DuckDB, Polars or pandas.

    ranks-00000.parquet         a row for each rank: rank, host, device, wall_ns, coordinates that tell its role
    collectives-00000.parquet   a row for each collective: rank, group, operation, dtype, size_bytes, `CollectiveTable`
    paths-00000.parquet         a row for each call path of a rank: rank, label, `PathTable`

Each file is of some ranks, so that those of thousands need not be in memory. `path` is the same on every rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bragg.errors import BadFile, UsageError
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveTable, PathTable, RankSummary

_RANKS_A_FILE = 128


def write_columns(ranks: Sequence[RankSummary], directory: Path) -> int:
    """Write the tables.

    Args:
        ranks: The ranks; their call paths are read here.
        directory: Is made if it is not there; files of the same names are replaced.

    Returns:
        How many bytes were written.

    Raises:
        UsageError: Polars is not installed.
        BadFile: The directory cannot be written.
    """
    try:
        import polars
    except ImportError as error:
        raise UsageError("polars is not installed", hint="pip install 'bragg[polars]'") from error
    size_bytes = 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number, begin in enumerate(range(0, len(ranks), _RANKS_A_FILE)):
            for name, columns in _tables(ranks[begin : begin + _RANKS_A_FILE]).items():
                path = directory / f"{name}-{number:05d}.parquet"
                polars.DataFrame(columns).write_parquet(path)
                size_bytes += path.stat().st_size
    except OSError as error:
        raise BadFile(f"cannot write {directory}: {error.strerror or error}", hint="Choose another place") from error
    return size_bytes


def _tables(ranks: Sequence[RankSummary]) -> dict[str, dict[str, Any]]:
    """The columns of each table, by its name."""
    return {"ranks": _ranks(ranks), "collectives": _collectives(ranks), "paths": _paths(ranks)}


def _ranks(ranks: Sequence[RankSummary]) -> dict[str, Any]:
    roles = [dict(rank.role) for rank in ranks]
    axes = sorted({axis for role in roles for axis in role})
    facts = {name: [getattr(rank, name) for rank in ranks] for name in ("rank", "host", "device", "wall_ns")}
    return {**facts, **{axis: [role.get(axis) for role in roles] for axis in axes}}


def _collectives(ranks: Sequence[RankSummary]) -> dict[str, Any]:
    tables = [rank.collectives() for rank in ranks]
    used = [rank.calls.take(table.call) for rank, table in zip(ranks, tables, strict=True)]
    calls = CollectiveCallTable.concatenate(used)
    return {
        "rank": np.repeat([rank.rank for rank in ranks], [len(table) for table in tables]),
        **{name: getattr(calls, name) for name in ("group", "operation", "dtype", "size_bytes")},
        **{
            name: np.concatenate([np.asarray(getattr(table, name), np.int64) for table in tables])
            for name in CollectiveTable.columns()
            if name != "call"
        },
    }


def _paths(ranks: Sequence[RankSummary]) -> dict[str, Any]:
    tables = [rank.paths() for rank in ranks]
    joined = PathTable.concatenate(tables)
    return {
        "rank": np.repeat([rank.rank for rank in ranks], [len(table) for table in tables]),
        "label": [label for rank in ranks for label in rank.labels()],
        **{name: getattr(joined, name) for name in PathTable.columns()},
    }
