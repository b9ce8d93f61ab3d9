"""Columns of numbers as few bytes that a browser decodes at once.

Each column has an entry in the header of its payload that says how it is written (`code`), how long it is (`n`), and
where its bytes are (`at`, `size`):

    raw     the values themselves, little endian
    varint  integers: zigzag, then seven bits a byte, low ones first, the eighth set on all but the last
    delta   integers as in varint, each less the one before it
    sparse  few values among `fill`: `rows` (delta) and `values`, columns of their own
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Integers that a browser's numbers, doubles, hold exactly.
_MAX_EXACT = 2**53
_RAW_TYPES = {"u8": np.uint8, "f64": np.float64}


@dataclass
class ColumnWriter:
    """Columns one after another.

    Attributes:
        parts: Their bytes.
        size_bytes: Of all parts.
    """

    parts: list[bytes] = field(default_factory=list)
    size_bytes: int = 0

    def raw(self, values: NDArray[Any], type_name: str) -> dict[str, Any]:
        """Values [rows] as they are, `u8` or `f64`."""
        data = np.ascontiguousarray(values, np.dtype(_RAW_TYPES[type_name]).newbyteorder("<")).tobytes()
        return {"code": "raw", "type": type_name, "n": len(values), **self._place(data)}

    def integers(self, values: NDArray[Any], *, delta: bool = False) -> dict[str, Any]:
        """Integers below 2^53 in size.

        Args:
            values: [rows], int64.
            delta: Neighbours are alike.
        """
        signed = np.diff(values, prepend=np.int64(0)) if delta else values
        return {"code": "delta" if delta else "varint", "n": len(values), **self._place(_varint(_zigzag(signed)))}

    def numbers(self, values: NDArray[Any]) -> dict[str, Any]:
        """Any numbers [rows]; as integers where all of them are."""
        if not len(values) or bool(((np.abs(values) < _MAX_EXACT) & (values == np.trunc(values))).all()):
            return self.integers(values.astype(np.int64))
        return self.raw(values, "f64")

    def sparse(self, values: NDArray[Any], is_there: NDArray[np.bool_]) -> dict[str, Any]:
        """Numbers [rows] of which few are there [rows]; the others become NaN."""
        rows = np.flatnonzero(is_there)
        return {
            "code": "sparse",
            "n": len(values),
            "rows": self.integers(rows, delta=True),
            "values": self.numbers(values[rows]),
        }

    def _place(self, data: bytes) -> dict[str, int]:
        place = {"at": self.size_bytes, "size": len(data)}
        self.parts.append(data)
        self.size_bytes += len(data)
        return place


def _zigzag(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Small for values near zero on both sides."""
    signed = values.astype(np.int64)
    return ((signed << 1) ^ (signed >> 63)).view(np.uint64)


def _varint(values: NDArray[np.uint64]) -> bytes:
    n_bytes = np.searchsorted(np.uint64(1) << np.arange(7, 64, 7, dtype=np.uint64), values, side="right") + 1
    end = np.cumsum(n_bytes)
    out = np.empty(int(end[-1]) if len(end) else 0, np.uint8)
    place, rest = end - n_bytes, values
    while len(rest):
        goes_on = rest >= 0x80
        out[place] = (rest & np.uint64(0x7F)) | np.where(goes_on, np.uint64(0x80), np.uint64(0))
        place, rest = place[goes_on] + 1, rest[goes_on] >> np.uint64(7)
    return out.tobytes()
