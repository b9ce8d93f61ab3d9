"""Memory that was allocated and not written, recognised by a pattern that `empty` fills in.

The pattern is looked for in each element by itself, so that whatever writes one, on the host or in a kernel, makes it
known as written. It reads as NaN in float16, bfloat16 and float32. It is too common a number among integers of 16 bits
and among all types of 8 bits, where it is looked for in whole words of 8 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from bragg.debug.host.imports import on_import
from bragg.debug.memory.storage import Buffer
from bragg.model.table import Array

_PATTERNS = {2: np.uint16(0x7FC1), 4: np.uint32(0x7FC17FC1), 8: np.uint64(0x7FC17FC17FC17FC1)}
_PIECE = _PATTERNS[2]


def is_known_by_element(buffer: Buffer) -> bool:
    """The pattern is rare among elements of this type, so that one is enough to recognise it."""
    dtype = buffer.dtype
    return dtype.size_bytes >= 4 or (dtype.size_bytes == 2 and dtype.is_floating())


def _pattern(buffer: Buffer) -> Any:
    """The pattern in words of the size in which it is looked for."""
    return _PATTERNS[buffer.dtype.size_bytes if is_known_by_element(buffer) else 8]


def _words(buffer: Buffer) -> tuple[Array, int]:
    """Whole aligned words of a buffer's memory, and how many bytes come before the first."""
    dtype = _pattern(buffer).dtype
    start = buffer.address + buffer.low * buffer.dtype.size_bytes
    skipped = -start % dtype.itemsize
    data = buffer.flat.view(np.uint8)
    count = max(len(data) - skipped, 0) // dtype.itemsize
    return data[skipped : skipped + count * dtype.itemsize].view(dtype), skipped


def has_unwritten(buffer: Buffer) -> bool:
    """Some of the memory was never written."""
    return bool((_words(buffer)[0] == _pattern(buffer)).any())


def unwritten(buffer: Buffer, offsets: Array) -> Array:
    """Elements that were never written: bool, in the shape of `offsets`, which are int64."""
    words, skipped = _words(buffer)
    if not len(words):
        return np.zeros(offsets.shape, bool)
    place = ((offsets + buffer.first) * buffer.dtype.size_bytes - skipped) // words.itemsize
    is_known = (place >= 0) & (place < len(words))
    result: Array = is_known & (words[np.where(is_known, place, 0)] == _pattern(buffer))
    return result


def unwritten_memory(buffer: Buffer) -> Array:
    """Elements of all of the memory that were never written: bool [elements]."""
    words, skipped = _words(buffer)
    result = np.zeros(len(buffer.flat), bool)
    first, per_word = -(-skipped // buffer.dtype.size_bytes), words.itemsize // buffer.dtype.size_bytes
    whole = result[first : first + len(words) * per_word].reshape(-1, per_word)
    whole[:] = (words == _pattern(buffer))[:, None]
    return result


def looks_unwritten(buffer: Buffer) -> Array:
    """Elements of the memory that may never have been written: bool [elements].

    Of types that are not known by the element, one in 256 or more looks so by chance.
    """
    data = buffer.flat.view(np.uint8)
    start = (buffer.address + buffer.low * buffer.dtype.size_bytes) % _PIECE.nbytes
    is_same = np.empty(len(data), bool)
    for place, byte in enumerate(np.roll(np.frombuffer(_PIECE.tobytes(), np.uint8), -start)):
        is_same[place :: _PIECE.nbytes] = data[place :: _PIECE.nbytes] == byte
    result: Array = np.asarray(is_same.reshape(-1, buffer.dtype.size_bytes).all(axis=1))
    return result


def _mark_array(array: Any) -> Any:
    if isinstance(array, np.ndarray) and array.flags.c_contiguous and not array.dtype.hasobject:
        data = array.reshape(-1).view(np.uint8)
        data[: len(data) // _PIECE.nbytes * _PIECE.nbytes].view(_PIECE.dtype)[:] = _PIECE
    return array


def _mark_tensor(tensor: Any) -> Any:
    import torch

    is_real = type(tensor) is torch.Tensor  # PyTorch's compiler has tensors without memory.
    if is_real and tensor.device.type == "cpu" and tensor.is_contiguous():
        data = tensor.detach().view(-1).view(torch.uint8)
        whole = data[: data.numel() // _PIECE.nbytes * _PIECE.nbytes]
        if whole.data_ptr() % _PIECE.nbytes == 0:
            whole.view(torch.int16).fill_(int(_PIECE))
    return tensor


def _marking(function: Callable[..., Any], mark: Callable[[Any], Any]) -> Callable[..., Any]:
    def allocate(*arguments: Any, **named: Any) -> Any:
        return mark(function(*arguments, **named))

    return allocate


@contextmanager
def _replaced(owner: Any, name: str, mark: Callable[[Any], Any]) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, _marking(before, mark))
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def marked_allocations() -> Iterator[None]:
    """Fill what the `empty` functions of NumPy and PyTorch give with the pattern."""
    with ExitStack() as stack:

        def mark_torch(torch: Any) -> None:
            for name in ("empty", "empty_like", "empty_strided"):
                stack.enter_context(_replaced(torch, name, _mark_tensor))
            for name in ("new_empty", "new_empty_strided"):
                stack.enter_context(_replaced(torch.Tensor, name, _mark_tensor))

        for name in ("empty", "empty_like"):
            stack.enter_context(_replaced(np, name, _mark_array))
        with on_import("torch", mark_torch):
            yield
