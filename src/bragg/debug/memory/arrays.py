"""Arrays of PyTorch, NumPy and others in host memory, as the engine's tensors."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DType, dtype_of_array
from bragg.errors import UsageError
from bragg.model.table import Array


def is_of_torch(value: Any) -> bool:
    """A tensor of PyTorch."""
    return hasattr(value, "data_ptr") and hasattr(value, "untyped_storage")


@lru_cache(maxsize=64)
def own_type(dtype: Any) -> DType | None:
    """Triton's type for NumPy's or PyTorch's."""
    return dtype_of_array(str(dtype).removeprefix("torch."))


def host_buffer(name: str, value: Any, dtype: DType) -> Buffer:
    """The tensor that an array in host memory is.

    Raises:
        UsageError: Its strides are not multiples of its elements.
    """
    return _torch_buffer(name, value, dtype) if is_of_torch(value) else _array_buffer(name, value, dtype)


def _torch_buffer(name: str, value: Any, dtype: DType) -> Buffer:
    shape, strides, address = tuple(value.shape), tuple(value.stride()), value.data_ptr()
    if _is_freed(value, address, shape, strides):
        gone = Buffer(name, dtype, np.zeros(0, dtype.storage), shape, strides, address, owner=value)
        gone.is_freed = True
        return gone
    if 0 in strides and any(extent > 1 for stride, extent in zip(strides, shape, strict=True) if stride == 0):
        return _whole_storage(name, value, dtype)
    return buffer_at(name, dtype, address, shape, strides, value)


def _whole_storage(name: str, value: Any, dtype: DType) -> Buffer:
    """A view with an axis of stride 0: kernels add distances along that axis themselves, as gathers do."""
    storage = value.untyped_storage()
    first, count = value.storage_offset(), storage.nbytes() // value.element_size()
    memory = _bytes(storage.nbytes()).from_address(storage.data_ptr()) if storage.nbytes() else b""
    flat = np.frombuffer(memory, dtype.storage, count)
    shape, strides = tuple(value.shape), tuple(value.stride())
    buffer = Buffer(name, dtype, flat, shape, strides, value.data_ptr(), first=first, owner=value)
    buffer.gaps = None
    return buffer


def _is_freed(value: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """The storage of a tensor of PyTorch was made smaller than the tensor, as sharded parameters are."""
    if not all(shape):
        return False
    storage = value.untyped_storage()
    last = sum(max(stride, 0) * (extent - 1) for stride, extent in zip(strides, shape, strict=True))
    return bool(address - storage.data_ptr() + (last + 1) * value.element_size() > storage.nbytes())


def _array_buffer(name: str, value: Any, dtype: DType) -> Buffer:
    """A NumPy array as it is, or what NumPy makes of another package's array."""
    array: Array = value if isinstance(value, np.ndarray) else np.asarray(value)
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise UsageError(f"the strides of {name} are not multiples of its elements", hint="Pass a copy of the array")
    strides = tuple(stride // size for stride in array.strides)
    address = int(array.__array_interface__["data"][0])
    buffer = buffer_at(name, dtype, address, array.shape, strides, array)
    buffer.writable = array.flags.writeable
    return buffer


def buffer_at(
    name: str, dtype: DType, address: int, shape: tuple[int, ...], strides: tuple[int, ...], owner: Any
) -> Buffer:
    """A tensor in host memory.

    Args:
        name: Of the parameter.
        dtype: Of its elements.
        address: Of the element with all indices 0, in bytes.
        shape: Of the tensor.
        strides: In elements.
        owner: Keeps the memory alive.
    """
    size = dtype.size_bytes
    reaches = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
    low, high = sum(min(reach, 0) for reach in reaches), sum(max(reach, 0) for reach in reaches)
    count = high - low + 1 if all(shape) else 0
    memory: Any = _bytes(count * size).from_address(address + low * size) if count else b""
    flat = np.frombuffer(memory, dtype.storage)
    return Buffer(name, dtype, flat, shape, strides, address, first=-low, owner=owner)


@lru_cache(maxsize=256)
def _bytes(count: int) -> Any:
    return ctypes.c_byte * count
