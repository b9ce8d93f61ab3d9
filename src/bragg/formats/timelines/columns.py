"""Slices as columns of small numbers that compress well.

Slices are ordered by track and start, so starts, tracks and correlation ids change by little from one slice to the
next: the difference to the slice before is stored, with its sign in the lowest bit. Each column takes the smallest
unsigned type that holds it, and its bytes are stored in planes, lowest first: the upper planes are nearly constant. A
replayed graph of 500 kernels takes 2 bytes a slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.model import SliceTable
from bragg.model.table import UInt8Array

_DIFFERENCES = ("start_ns", "track", "correlation")
_PLAIN = ("duration_ns", "node")


def pack(slices: SliceTable) -> dict[str, UInt8Array]:
    """The columns of ordered slices as byte planes: uint8 [itemsize, n_slices]."""
    columns = {name: getattr(slices, name).astype(np.int64) for name in slices.columns()}
    for name in _DIFFERENCES:
        change = np.diff(columns[name], prepend=0)
        columns[name] = (change << 1) ^ (change >> 63)
    return {name: _planes(values.view(np.uint64)) for name, values in columns.items()}


def unpack(planes: Mapping[str, NDArray[Any]]) -> SliceTable:
    """The slices from their byte planes, uint8 [bytes a value, slices] each.

    Raises:
        ValueError: The planes do not fit together.
    """
    columns = {name: _values(planes[name]) for name in (*_DIFFERENCES, *_PLAIN)}
    for name in _DIFFERENCES:
        stored = columns[name]
        columns[name] = np.cumsum((stored >> np.uint64(1)).view(np.int64) ^ -(stored & np.uint64(1)).view(np.int64))
    return SliceTable(**columns)


def _planes(values: NDArray[np.uint64]) -> UInt8Array:
    largest = int(values.max(initial=0))
    itemsize = next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))
    return np.ascontiguousarray(values.astype(f"<u{itemsize}").view(np.uint8).reshape(-1, itemsize).T)


def _values(planes: NDArray[Any]) -> Any:
    if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) not in (1, 2, 4, 8):
        raise ValueError("a column of slices is not an array of byte planes")
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}").reshape(-1).astype(np.uint64)
