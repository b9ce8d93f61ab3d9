"""Block pointers and tensor descriptors: windows into a tensor that know its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.memory import atomics, load_store
from bragg.debug.memory.provenance import addresses_of
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType, PointerType
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.shapes import expand_dims, reshape
from bragg.debug.state import machine
from bragg.debug.values import OPERATORS, Pointer, Tensor, TypeOfBlock

_INT64 = DTYPES["int64"]
_ALIGNMENT = 16  # Bytes. Source: CUDA driver API, cuTensorMapEncodeTiled.

# Types that each atomic operation of a descriptor takes. Source: PTX ISA, cp.reduce.async.bulk.tensor.
_BITS = ("uint32", "int32", "uint64", "int64")
_REDUCIBLE = {
    "add": ("uint32", "int32", "uint64", "fp32", "fp16", "bf16"),
    "min": (*_BITS, "fp16", "bf16"),
    "max": (*_BITS, "fp16", "bf16"),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
}


def _steps(count: int) -> Tensor:
    affine = Affine(np.zeros(1, np.int64), (1,), (count,))
    return Tensor(None, _INT64, affine, (0, count - 1))


def _wide(values: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(cast(as_tensor(value), _INT64) for value in values)


@dataclass(frozen=True)
class _Window:
    """A window of a tensor.

    Attributes:
        base: Pointer to the tensor's first element.
        extents: Of the tensor, one for each axis.
        strides: In elements.
        offsets: Of the window's first element.
        block_shape: Of the window.
    """

    base: Pointer
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]
    offsets: tuple[Any, ...]
    block_shape: tuple[int, ...]

    is_kernel_value: ClassVar[bool] = True

    def index(self, axis: int) -> Tensor:
        """Positions along one axis of the tensor, shaped to broadcast over the window."""
        steps = OPERATORS["add"](self.offsets[axis], _steps(self.block_shape[axis]))
        for other in range(len(self.block_shape)):
            if other != axis:
                steps = expand_dims(steps, other)
        return steps  # type: ignore[no-any-return]

    def pointers(self) -> Pointer:
        """Of all elements of the window."""
        total: Any = None
        for axis, stride in enumerate(self.strides):
            part = OPERATORS["mul"](self.index(axis), stride)
            total = part if total is None else OPERATORS["add"](total, part)
        moved: Pointer = OPERATORS["add"](self.base, total)
        return moved

    def inside(self, axes: Sequence[int]) -> Any:
        """Mask of the elements inside of the tensor along some axes; None: no axis."""
        mask: Any = None
        for axis in axes:
            index = self.index(axis)
            test = OPERATORS["and"](OPERATORS["ge"](index, 0), OPERATORS["lt"](index, self.extents[axis]))
            mask = test if mask is None else OPERATORS["and"](mask, test)
        return mask


@dataclass(frozen=True)
class BlockPointer(_Window):
    """What `tl.make_block_ptr` gives."""

    @property
    def type(self) -> TypeOfBlock:
        """Pointer to a block, which is one pointer."""
        return TypeOfBlock(PointerType(self.base.element), ())

    @property
    def dtype(self) -> PointerType:
        """Pointer to the element type."""
        return PointerType(self.base.element)

    def advanced(self, amounts: Sequence[Any]) -> BlockPointer:
        """The window moved along each axis."""
        moved = tuple(OPERATORS["add"](old, by) for old, by in zip(self.offsets, _wide(amounts), strict=True))
        return replace(self, offsets=moved)

    def load(self, boundary_check: Sequence[int], padding: str) -> Tensor:
        """Read the window; lanes outside along the checked axes hold the padding."""
        mask = self.inside(boundary_check)
        filler = {"": None if mask is None else 0.0, "zero": 0.0, "nan": float("nan")}.get(padding, padding)
        if isinstance(filler, str):
            raise KernelFault(f"unknown padding {padding!r}", hint="Choose zero or nan")
        if filler == 0.0 and self.base.element.is_int():
            filler = 0
        return load_store.load(self.pointers(), mask, filler)

    def store(self, value: Any, boundary_check: Sequence[int]) -> None:
        """Write the window, except lanes outside along the checked axes."""
        load_store.store(self.pointers(), value, self.inside(boundary_check))


def make_block_pointer(
    base: Any, shape: Sequence[Any], strides: Sequence[Any], offsets: Sequence[Any], block_shape: Sequence[int]
) -> BlockPointer:
    """A window into the tensor that starts at a pointer."""
    if not isinstance(base, Pointer) or base.shape:
        raise KernelFault("tl.make_block_ptr needs one pointer, not a block")
    sizes = {len(shape), len(strides), len(offsets), len(block_shape)}
    if len(sizes) != 1:
        raise KernelFault("shape, strides, offsets and block_shape of a block pointer differ in length")
    return BlockPointer(base, _wide(shape), _wide(strides), _wide(offsets), tuple(int(n) for n in block_shape))


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor, made on the host or in the kernel; accesses outside read the padding and write nothing.

    Attributes:
        base: Pointer to the first element.
        extents: Of the tensor.
        element_strides: In elements.
        block_shape: Of the blocks that are read and written.
        padding: `zero` or `nan`.
        layout: Of the blocks in shared memory, as Gluon's kernels ask for it; no matter here.
        is_of_host: No kernel has made it: what is wrong with it is found at its uses.
    """

    base: Pointer
    extents: tuple[Any, ...]
    element_strides: tuple[Any, ...]
    block_shape: tuple[int, ...]
    padding: str = "zero"
    layout: Any = None
    is_of_host: bool = False

    is_kernel_value: ClassVar[bool] = True

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.base.element

    @property
    def type(self) -> TypeOfBlock:
        """Type of the blocks."""
        return TypeOfBlock(self.base.element, self.block_shape)

    @property
    def block_type(self) -> TypeOfBlock:
        """The same, as Gluon calls it."""
        return self.type

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of a block."""
        return self.type.nbytes

    @property
    def shape(self) -> tuple[Any, ...]:
        """Of the tensor, in elements."""
        return self.extents

    @property
    def strides(self) -> tuple[Any, ...]:
        """Of the tensor, in elements: from one to the next along each axis."""
        return self.element_strides

    def tell_misalignment(self) -> None:
        """Tell of a base or a stride that the hardware does not take."""
        listeners = machine().listeners
        if not listeners.differs:
            return
        size = self.base.element.size_bytes
        strides = (stride.data * size for stride in self.element_strides[:-1])
        for what, places in (("base", addresses_of(self.base).data), *(("stride", stride) for stride in strides)):
            if (places % _ALIGNMENT).any():
                listeners.tell_difference(
                    f"the {what} of a tensor descriptor is not a multiple of {_ALIGNMENT} bytes: a GPU faults",
                    "Align the tensor and pad its rows",
                )

    def _tell_use(self) -> None:
        if self.is_of_host:
            self.tell_misalignment()

    def _window(self, offsets: Any) -> _Window:
        self._tell_use()
        if len(offsets) != len(self.block_shape):
            raise KernelFault(f"a descriptor of {len(self.block_shape)} axes was given {len(offsets)} offsets")
        return _Window(self.base, self.extents, self.element_strides, _wide(offsets), self.block_shape)

    def load(self, offsets: Any) -> Tensor:
        """Read the block at offsets."""
        window = self._window(offsets)
        nan = float("nan") if self.padding == "nan" else 0
        return load_store.load(window.pointers(), window.inside(range(len(self.block_shape))), nan)

    def store(self, offsets: Any, value: Any) -> None:
        """Write the block at offsets."""
        window = self._window(offsets)
        value = reshape(as_tensor(value), self.block_shape)
        load_store.store(window.pointers(), value, window.inside(range(len(self.block_shape))))

    def gather(self, rows: Any, column: Any) -> Tensor:
        """Read a row of the block's width at each of some row numbers, from one column on."""
        pointers, mask = self._rows(rows, column)
        return load_store.load(pointers, mask, float("nan") if self.padding == "nan" else 0)

    def scatter(self, value: Any, rows: Any, column: Any) -> None:
        """Write a row of the block's width at each of some row numbers, from one column on."""
        pointers, mask = self._rows(rows, column)
        load_store.store(pointers, value, mask)

    def _rows(self, rows: Any, column: Any) -> tuple[Pointer, Any]:
        """Pointers [rows, columns], and which of them are inside.

        Raises:
            KernelFault: What the hardware does not gather.
        """
        self._tell_use()
        numbers = as_tensor(rows)
        least_columns = 32 // self.dtype.bits * 8
        if len(self.block_shape) != 2 or self.block_shape[0] != 1:
            raise KernelFault(f"gather and scatter need blocks of one row, not {list(self.block_shape)}")
        if len(numbers.shape) != 1 or numbers.shape[0] < 8 or numbers.dtype.name not in ("int16", "int32"):
            raise KernelFault(
                f"gather and scatter take 8 row numbers or more, not {numbers.dtype}{list(numbers.shape)}"
            )
        if self.block_shape[1] < least_columns:
            raise KernelFault(f"gather and scatter of {self.dtype} need {least_columns} columns or more")
        down = expand_dims(cast(numbers, _INT64), 1)
        across = OPERATORS["add"](expand_dims(_steps(self.block_shape[1]), 0), _wide([column])[0])
        mask: Any = None
        total: Any = None
        for index, extent, stride in zip((down, across), self.extents, self.element_strides, strict=True):
            test = OPERATORS["and"](OPERATORS["ge"](index, 0), OPERATORS["lt"](index, extent))
            mask = test if mask is None else OPERATORS["and"](mask, test)
            part = OPERATORS["mul"](index, stride)
            total = part if total is None else OPERATORS["add"](total, part)
        return OPERATORS["add"](self.base, total), mask

    def reduce(self, operation: str, offsets: Any, value: Any) -> None:
        """Change the block at offsets atomically.

        Raises:
            KernelFault: The hardware has no such operation on elements of this type.
        """
        if self.dtype.name not in _REDUCIBLE[operation]:
            raise KernelFault(f"atomic_{operation} of a tensor descriptor does not take {self.dtype}")
        target = machine().listeners.target
        if self.dtype.bits == 16 and operation != "add" and target is not None and not target.reduces_halves:
            raise KernelFault(f"atomic_{operation} of {self.dtype} takes a GPU with descriptors, not {target.name}")
        window = self._window(offsets)
        atomics.reduce(operation, window.pointers(), value, window.inside(range(len(self.block_shape))))

    def __getattr__(self, name: str) -> Any:
        operation = name.removeprefix("atomic_")
        if name.startswith("atomic_") and operation in _REDUCIBLE:
            return lambda offsets, value: self.reduce(operation, offsets, value)
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"{name} of a tensor descriptor is not supported", hint="Use load, store or atomic_add")


# What the hardware copies at least, along the last axis.
_LEAST_ROW_BYTES = 16


def make_descriptor(
    base: Any,
    shape: Sequence[Any],
    strides: Sequence[Any],
    block_shape: Sequence[int],
    padding: str = "zero",
    layout: Any = None,
    *,
    is_of_host: bool = False,
) -> Descriptor:
    """A descriptor of the tensor that starts at a pointer.

    Raises:
        KernelFault: The last axis is not contiguous.
    """
    if not isinstance(base, Pointer) or base.shape:
        raise KernelFault("a tensor descriptor needs one pointer, not a block")
    widened = _wide(strides)
    if widened[-1].known_bounds() != (1, 1):
        raise KernelFault("the last stride of a tensor descriptor must be 1")
    row_bytes = int(block_shape[-1]) * base.element.size_bytes
    if row_bytes < _LEAST_ROW_BYTES:
        raise KernelFault(
            f"Descriptor block shape must have at least {_LEAST_ROW_BYTES} bytes in the last dimension, but got "
            f"{block_shape[-1]} * {base.element.size_bytes} = {row_bytes} bytes"
        )
    made = Descriptor(
        base, _wide(shape), widened, tuple(int(n) for n in block_shape), padding, layout, is_of_host=is_of_host
    )
    if not is_of_host:
        made.tell_misalignment()
    return made
