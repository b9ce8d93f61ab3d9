"""Integer blocks in closed form: a base for each program plus a stride along each axis.

Most offsets of most kernels are such blocks. In closed form their range is known without looking at an element, and
memory is read and written by slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import add
from typing import Any

import numpy as np

from bragg.model.table import Array


@dataclass(frozen=True)
class Affine:
    """The block `base[p] + sum(strides[d] * index[d])`.

    Attributes:
        base: int64 [programs or 1].
        strides: One for each axis of the block; 0 along axes that do not matter.
        shape: Of the block.
    """

    base: Array
    strides: tuple[int, ...]
    shape: tuple[int, ...]

    def bounds(self) -> tuple[int, int]:
        """Least and greatest element."""
        base = self.base
        low, high = (base.item(),) * 2 if len(base) == 1 else (int(base.min()), int(base.max()))
        for stride, extent in zip(self.strides, self.shape, strict=True):
            reach = stride * (extent - 1)
            if reach < 0:
                low += reach
            else:
                high += reach
        return low, high

    def meets(self) -> bool:
        """Two elements may be equal: unless each stride is longer than all that smaller ones reach."""
        reach = 0
        for stride, extent in sorted(zip(map(abs, self.strides), self.shape, strict=True)):
            if extent > 1 and stride <= reach:
                return True
            reach += stride * (extent - 1)
        return False

    def array(self, dtype: np.dtype[Any]) -> Array:
        """All elements, of `dtype`: [programs or 1, *shape]."""
        base = self.base.astype(dtype, copy=False).reshape(-1, *[1] * len(self.shape))
        return base + _grid(self.strides, self.shape, dtype)

    def plus(self, other: Affine) -> Affine | None:
        """The sum of two blocks of one rank; None when their shapes do not fit."""
        if self.shape == other.shape:
            return Affine(self.base + other.base, tuple(map(add, self.strides, other.strides)), self.shape)
        shape = []
        for a, b in zip(self.shape, other.shape, strict=True):
            if a != b and 1 not in (a, b):
                return None
            shape.append(max(a, b))
        strides = tuple(
            (a if n > 1 else 0) + (b if m > 1 else 0)
            for a, b, n, m in zip(self.strides, other.strides, self.shape, other.shape, strict=True)
        )
        return Affine(self.base + other.base, strides, tuple(shape))

    def times(self, factor: int) -> Affine:
        """The block with every element multiplied."""
        if factor == 1:
            return self
        return Affine(self.base * factor, tuple(stride * factor for stride in self.strides), self.shape)

    def lifted(self, rank: int) -> Affine:
        """The block with axes of one element in front."""
        missing = rank - len(self.shape)
        return Affine(self.base, (0,) * missing + self.strides, (1,) * missing + self.shape) if missing else self

    def spread(self, shape: tuple[int, ...]) -> Affine:
        """The block broadcast to a shape of the same rank."""
        strides = tuple(stride if n > 1 else 0 for stride, n in zip(self.strides, self.shape, strict=True))
        return Affine(self.base, strides, shape)

    def rows(self, positions: Array) -> Affine:
        """The block for some of the programs: intp [chosen]."""
        return Affine(self.base[positions], self.strides, self.shape) if len(self.base) > 1 else self


@lru_cache(maxsize=512)
def _grid(strides: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The block with base 0: [1, *shape]; read-only because it is shared."""
    total = np.zeros((1,) * (len(shape) + 1), np.int64)
    for axis, (stride, extent) in enumerate(zip(strides, shape, strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride
        total = total + steps.reshape(*[1] * (axis + 1), extent, *[1] * (len(shape) - axis - 1))
    grid = np.ascontiguousarray(np.broadcast_to(total, (1, *shape)).astype(dtype))
    grid.flags.writeable = False
    return grid
