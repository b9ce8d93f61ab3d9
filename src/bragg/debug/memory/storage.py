"""Tensors of the host as the engine sees them: flat memory with exact limits."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.lazy import lazy
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.dtypes import DType
from bragg.debug.numbers.rounding import decode, encode
from bragg.model.table import Array


class Buffer:
    """One tensor argument.

    Args:
        name: Of the kernel's parameter.
        dtype: Of the elements.
        flat: The elements from the lowest to the highest address, of the type's storage.
        first: Index in `flat` of the element with all indices 0.
        shape: Of the tensor.
        strides: In elements.
        address: Of the element with all indices 0, in bytes.
        writable: False for arrays that must not change.
        owner: Keeps the memory alive.

    Attributes:
        is_freed: The tensor is there, and its memory is not.
        is_constant: The kernel's parameter is annotated `tl.const`.
    """

    def __init__(
        self,
        name: str,
        dtype: DType,
        flat: Array,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        address: int,
        *,
        first: int = 0,
        writable: bool = True,
        owner: Any = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.flat = flat
        self.first = first
        self.shape = shape
        self.strides = strides
        self.address = address
        self.writable = writable
        self.is_freed = False
        self.is_constant = False
        self.owner = owner
        if len(flat):
            LIVE[id(self)] = self

    @property
    def low(self) -> int:
        """Least element offset."""
        return -self.first

    @property
    def high(self) -> int:
        """One more than the greatest element offset."""
        return len(self.flat) - self.first

    def spans(self, address: int) -> bool:
        """An address in bytes lies between the lowest and the highest element."""
        start = self.address - self.first * self.flat.itemsize
        return start <= address < start + len(self.flat) * self.flat.itemsize

    def check_writable(self) -> None:
        """Nothing for a tensor that a kernel may write to.

        Raises:
            KernelFault: It may not write to this one.
        """
        if self.is_constant:
            raise KernelFault(
                f"Cannot store to a constant pointer: {self.name} is annotated tl.const", hint="Drop the annotation"
            )
        if not self.writable:
            raise KernelFault(f"{self.name} is read-only", hint="Pass an array that may be written, such as NumPy's")

    def seen_as(self, dtype: DType) -> Buffer:
        """The tensor as one of elements of another size, as many as it holds; itself when the size is the same.

        Raises:
            Unsupported: It is a strided view, or does not begin with a whole element.
        """
        size = dtype.size_bytes
        if size == self.flat.itemsize:
            return self
        if size not in self._views:
            start = self.first * self.flat.itemsize
            if self.gaps is not None or start % size:
                raise Unsupported(
                    f"a pointer into {self.name} cannot become one to {dtype}: it is a strided view",
                    hint="View the tensor with the other type before the launch",
                )
            whole = self.flat.nbytes // size * size  # What lies only in part in the tensor is outside of it.
            flat = self.flat.view(np.uint8)[:whole].view(dtype.storage)
            shape, first = (len(flat),), start // size
            self._views[size] = Buffer(
                self.name, dtype, flat, shape, (1,), self.address, first=first, writable=self.writable, owner=self
            )
            self._views[size].is_constant = self.is_constant
        return self._views[size]

    @lazy
    def _views(self) -> dict[int, Buffer]:
        return {}

    @lazy
    def gaps(self) -> Array | None:
        """Elements between those of a strided view: bool [len(flat)]; None: there are none."""
        if math.prod(self.shape) >= len(self.flat):
            return None
        gaps = np.ones(len(self.flat), bool)
        if any(stride < 0 for stride in self.strides):
            gaps[self._offsets() + self.first] = False
        else:
            window(gaps, self.first, self.shape, self.strides)[...] = False
        return gaps if gaps.any() else None

    def _offsets(self) -> Array:
        grids = np.indices(self.shape, sparse=True)
        total = np.zeros((1,) * len(self.shape), np.int64)
        for grid, stride in zip(grids, self.strides, strict=True):
            total = total + grid * stride
        return total.ravel()

    def has_inside(self, bounds: tuple[int, int]) -> bool:
        """Every offset in a range belongs to the tensor, for sure."""
        return bounds[0] >= self.low and bounds[1] < self.high and self.gaps is None

    def outside(self, offsets: Array) -> Array:
        """Lanes that are not elements of the tensor: bool, in the shape of `offsets`, which are int64."""
        outside = (offsets < self.low) | (offsets >= self.high)
        if self.gaps is not None:
            inside = np.where(outside, self.low, offsets)
            outside |= self.gaps[inside + self.first]
        return outside

    def index(self, offset: int) -> tuple[int, ...]:
        """N-d index of an element offset of a tensor whose strides are positive; the first axis takes what is over."""
        order = sorted(range(len(self.strides)), key=lambda axis: -self.strides[axis])
        index = [0] * len(self.strides)
        for axis in order:
            if self.strides[axis] > 0:
                index[axis], offset = divmod(offset, self.strides[axis])
        return tuple(index)

    def read(self, offsets: Array, dtype: DType) -> Array:
        """Values at element offsets inside the tensor, of `dtype` and of the shape of `offsets`."""
        return decode(self._as(dtype).take(offsets + self.first if self.first else offsets), dtype)

    def write(self, offsets: Array, values: Array, dtype: DType) -> None:
        """Write values at offsets, int64 of one shape with them; the last one wins where offsets repeat."""
        self._as(dtype)[offsets + self.first] = encode(values, dtype)

    def read_affine(self, block: Affine, dtype: DType) -> Array:
        """Values of a block in closed form inside the tensor: [programs or 1, *block], in the carrier of `dtype`."""
        return decode(self._copy(block, dtype), dtype)

    def write_affine(self, block: Affine, values: Array, dtype: DType) -> bool:
        """Write a block in closed form.

        Args:
            block: Offsets.
            values: [programs or 1, *block], in the carrier of `dtype`.
            dtype: Type of the elements.

        Returns:
            False, and nothing is written, when elements of the block overlap.
        """
        if not _is_injective(block):
            return False
        bits = encode(values, dtype)
        flat = self._as(dtype)
        step = _step(block.base)
        reach = sum(stride * (extent - 1) for stride, extent in zip(block.strides, block.shape, strict=True))
        if step is not None and (step > reach or len(block.base) == len(bits) == 1):
            start = int(block.base[0]) + self.first
            window(flat, start, (len(block.base), *block.shape), (step, *block.strides))[...] = bits
            return True
        programs = max(len(block.base), len(bits))
        bits = np.broadcast_to(bits, (programs, *block.shape))
        for base, row in zip(np.broadcast_to(block.base, programs).tolist(), bits, strict=True):
            window(flat, base + self.first, block.shape, block.strides)[...] = row
        return True

    def _copy(self, block: Affine, dtype: DType) -> Array:
        flat = self._as(dtype)
        base = block.base + self.first
        step = _step(base)
        if step is not None:
            return np.array(window(flat, int(base[0]), (len(base), *block.shape), (step, *block.strides)))
        reach = sum(stride * (extent - 1) for stride, extent in zip(block.strides, block.shape, strict=True))
        windows = window(flat, 0, (len(flat) - reach, *block.shape), (1, *block.strides))
        chosen: Array = windows[base]
        return chosen

    def _as(self, dtype: DType) -> Array:
        return self.flat if dtype.storage == self.flat.dtype else self.flat.view(dtype.storage)


# Every tensor that a kernel may point into now, by identity.
LIVE: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()


def window(array: Array, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A view of `shape` into a contiguous array of any type, from an element on; strides are counted in elements.

    `as_strided` takes five times as long.
    """
    size = array.itemsize
    view: Array = np.ndarray(shape, array.dtype, array, start * size, tuple(stride * size for stride in strides))
    return view


def _step(base: Array) -> int | None:
    """The distance between bases that are equally far apart and ascending; None when they are not."""
    if len(base) == 1:
        return 0
    steps = np.diff(base)
    return int(steps[0]) if steps[0] >= 0 and (steps == steps[0]).all() else None


def _is_injective(block: Affine) -> bool:
    """No two elements of one program's block are the same, by their strides alone."""
    reach = 0
    for stride, extent in sorted(zip(block.strides, block.shape, strict=True)):
        if extent == 1:
            continue
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True
