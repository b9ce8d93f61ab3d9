"""Collectives of many ranks in one temporary file, so that memory does not grow with their number."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from bragg.errors import BadFile
from bragg.model.ranks.summary import CollectiveTable


class KeptCollectives:
    """The file; it has no name, and is gone with the last one who reads of it.

    Raises:
        BadFile: There is no directory for it.
    """

    def __init__(self) -> None:
        try:
            self._file, name = mkstemp(prefix="bragg-")
            Path(name).unlink()
        except OSError as error:
            raise _no_room() from error
        finalize(self, os.close, self._file)
        self._size_bytes = 0

    def keep(self, table: CollectiveTable) -> Callable[[], CollectiveTable]:
        """Write the collectives of a rank.

        Returns:
            Reads them.

        Raises:
            BadFile: There is no room.
        """
        columns = [np.asarray(getattr(table, name)) for name in table.columns()]
        content = b"".join(column.tobytes() for column in columns)
        try:
            written = os.write(self._file, content)
        except OSError as error:
            raise _no_room() from error
        if written < len(content):
            raise _no_room()
        begin, self._size_bytes = self._size_bytes, self._size_bytes + len(content)
        return partial(self._read, begin, len(table), [column.dtype for column in columns])

    def _read(self, begin: int, n_rows: int, dtypes: list[np.dtype[Any]]) -> CollectiveTable:
        sizes = [n_rows * dtype.itemsize for dtype in dtypes]
        content = os.pread(self._file, sum(sizes), begin)
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        columns: list[NDArray[Any]] = [
            np.frombuffer(content, dtype, n_rows, at) for dtype, at in zip(dtypes, starts, strict=True)
        ]
        return CollectiveTable(**dict(zip(CollectiveTable.columns(), columns, strict=True)))


def _no_room() -> BadFile:
    return BadFile("there is no room for a temporary file", hint="Set TMPDIR to a directory with more")
