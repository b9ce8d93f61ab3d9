"""Shapes of blocks, as kernels see them."""

from __future__ import annotations

from typing import Any

__all__ = ["Shape"]


class Shape(tuple[int, ...]):
    """A shape as kernels see it: it also joins with lists, and equals them."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if type(other) is list else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Shape:
        return Shape((*self, *other))

    def __radd__(self, other: Any) -> Shape:
        return Shape((*other, *self))

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Shape(part) if isinstance(key, slice) else part
