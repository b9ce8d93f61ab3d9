"""Tables of equally long columns: numpy arrays, or lists of strings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self


Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt8Array = NDArray[np.uint8]

_DTYPE_OF_ANNOTATION: dict[Any, np.dtype[Any] | None] = {
    "FloatArray": np.dtype(np.float64),
    "Int32Array": np.dtype(np.int32),
    "Int64Array": np.dtype(np.int64),
    "UInt8Array": np.dtype(np.uint8),
    "list[str]": None,
}


@dataclass(frozen=True, eq=False)
class Table:
    """Base of all tables: the annotations of a subclass are its columns, values are converted to their dtype.

    Raises:
        ValueError: Columns differ in length.
    """

    def __post_init__(self) -> None:
        for name, dtype in self.columns().items():
            value = getattr(self, name)
            converted = list(value) if dtype is None else np.ascontiguousarray(value, dtype)
            object.__setattr__(self, name, converted)
        lengths = {name: len(getattr(self, name)) for name in self.columns()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{type(self).__name__}: columns differ in length: {lengths}")

    @classmethod
    @cache
    def columns(cls) -> dict[str, np.dtype[Any] | None]:
        """Column names in order, with their dtype; None for strings."""
        return {item.name: _DTYPE_OF_ANNOTATION[item.type] for item in fields(cls)}

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls(**{name: [] for name in cls.columns()})

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.columns()))))

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows with these indices, integers [rows kept], or where a mask, bool [rows], is true, in that order."""
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return type(self)(
            **{
                name: [values[index] for index in indices.tolist()] if isinstance(values, list) else values[indices]
                for name, values in self._values()
            }
        )

    def replace(self, **changed: Any) -> Self:
        """The same table with some columns replaced."""
        return type(self)(**{**dict(self._values()), **changed})

    @classmethod
    def concatenate(cls, tables: Sequence[Self]) -> Self:
        """All rows of all tables, in order."""
        if not tables:
            return cls.empty()
        joined: dict[str, Any] = {}
        for name, dtype in cls.columns().items():
            parts = [getattr(table, name) for table in tables]
            joined[name] = list(itertools.chain(*parts)) if dtype is None else np.concatenate(parts)
        return cls(**joined)

    def _values(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.columns()]
