"""What a file may ask of its reader: memory and work in proportion to its size on the disk.

A small file can describe much: compressed zeros, a column of one value, a list that is read a thousand times. Honest
files stay far below these limits, whatever their size; the floors let small ones compress as well as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bragg.model import CallTree

# Each level takes a step of numpy for every sum along call paths: 50,000 of them take 0.3 s. Python stops at 1,000.
MAX_DEPTH = 50_000
_MB = 1 << 20
# A timeline of a replayed graph takes 2 bytes a slice on the disk, and 104 while it is put in order.
_LEAST_MEMORY_BYTES, _MEMORY_BYTES_A_BYTE = 768 * _MB, 64
# gzip makes traces 10 to 30 times smaller.
_LEAST_CONTENT_BYTES, _CONTENT_BYTES_A_BYTE = 64 * _MB, 64
# Rows take from 0.2 us, as a field, to 16, as an event of a trace; the densest honest ones have 4 bytes each.
_LEAST_ROWS, _BYTES_A_ROW = 200_000, 4
_MAX_METRICS = 10_000
# Of nine bytes: whether there is one, and which.
_LEAST_VALUES, _VALUES_A_BYTE = 48 * _MB, 4


class TooLargeError(ValueError):
    """A file asks for more than it may."""


@dataclass(frozen=True)
class Limits:
    """The limits of one file.

    Attributes:
        file_bytes: Its size on the disk.
    """

    file_bytes: int

    @classmethod
    def of(cls, path: Path) -> Limits:
        """The limits of a file; OSError where there is none."""
        return cls(path.stat().st_size)

    @property
    def memory_bytes(self) -> int:
        """What its tables may take."""
        return max(_LEAST_MEMORY_BYTES, _MEMORY_BYTES_A_BYTE * self.file_bytes)

    @property
    def content_bytes(self) -> int:
        """Limit of its uncompressed size."""
        return max(_LEAST_CONTENT_BYTES, _CONTENT_BYTES_A_BYTE * self.file_bytes)

    @property
    def rows(self) -> int:
        """How many events, fields, or rows of a database it may have."""
        return _LEAST_ROWS + self.file_bytes // _BYTES_A_ROW

    def check_memory(self, needed_bytes: int) -> None:
        """Check what the tables take.

        Raises:
            TooLargeError: It is too much.
        """
        if needed_bytes > self.memory_bytes:
            raise TooLargeError(
                f"it takes over {self.memory_bytes // _MB:,} MB of memory, too much for a file of its size"
            )

    def check_rows(self, n_rows: int) -> None:
        """Check the number of rows against the limit."""
        if n_rows > self.rows:
            raise TooLargeError(f"it has over {self.rows:,} events or fields, too many for a file of its size")

    def check_metrics(self, n_metrics: int, n_nodes: int) -> None:
        """Check the number of columns that have a value for each node."""
        if n_metrics > _MAX_METRICS:
            raise TooLargeError(f"it has over {_MAX_METRICS:,} metrics")
        if n_metrics * n_nodes > _LEAST_VALUES + _VALUES_A_BYTE * self.file_bytes:
            raise TooLargeError(f"{n_metrics:,} metrics of {n_nodes:,} call paths are too many for a file of its size")


def check_depth(tree: CallTree) -> None:
    """Check the depth of a tree whose laws hold.

    Raises:
        TooLargeError: Its call paths are too long.
    """
    next_depth(int(tree.depth.max()) - 1)


def next_depth(depth: int) -> int:
    """The depth of a child.

    Raises:
        TooLargeError: It is too deep.
    """
    if depth >= MAX_DEPTH:
        raise TooLargeError(f"its call paths are deeper than {MAX_DEPTH:,}")
    return depth + 1
