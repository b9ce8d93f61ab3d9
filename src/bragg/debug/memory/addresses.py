"""Which tensor lies at an address: for kernels that load pointers from memory.

The tensors of the launch are known. Others, whose `data_ptr()` the program put into a table, are looked for among the
objects that are alive in this process.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.memory.arrays import host_buffer, is_of_torch, own_type
from bragg.debug.memory.storage import LIVE, Buffer
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.state import launch_number, machine


def nowhere_at(address: int) -> Buffer:
    """What an address points into that is in no tensor: every access there is out of bounds."""
    return Buffer("memory of no tensor", DTYPES["uint8"], np.zeros(0, np.uint8), (0,), (1,), address)


# All such addresses that are multiples of the element's size and no larger than those of programs are in this one.
NOWHERE = nowhere_at(0)


def is_nowhere(buffer: Buffer) -> bool:
    """It is `NOWHERE`, or that seen with another type."""
    return buffer.name == NOWHERE.name


def buffers_at(addresses: Sequence[int]) -> list[Buffer]:
    """The tensor that each address lies in; `NOWHERE` for those that lie in none."""
    found = [_known(address) for address in addresses]
    missing = {address for address, buffer in zip(addresses, found, strict=True) if buffer is None and address}
    if missing:
        machine().found.extend(_buffers_of(missing))
        found = [
            _known(address) if buffer is None else buffer for address, buffer in zip(addresses, found, strict=True)
        ]
    return [NOWHERE if buffer is None else buffer for buffer in found]


def is_in_torch_tensor(address: int) -> bool:
    """A tensor of PyTorch that is alive lies at an address."""
    extents = _census("tracked", _tracked_tensors)
    return any(start <= address < start + size and is_of_torch(kept()) for start, size, kept in extents)


def _known(address: int) -> Buffer | None:
    """The largest tensor of the launch around an address; one that starts there is preferred."""
    known = [buffer for buffer in LIVE.values() if buffer.spans(address)]
    return max(known, key=lambda one: (one.address == address, one.flat.nbytes)) if known else None


def _buffers_of(addresses: set[int]) -> Iterator[Buffer]:
    named = {id(value): name for name, value in _variables()}
    missing = set(addresses)
    for census in _searches():
        extents = census()
        for address in sorted(missing):
            around = [one for one in extents if one[0] <= address < one[0] + one[1]]
            tensor = max(around, key=lambda one: (one[0] == address, one[1]))[2]() if around else None
            if tensor is not None:
                missing.discard(address)
                yield _buffer_of(named.get(id(tensor), f"tensor at {address:#x}"), tensor)
        if not missing:
            return


def _buffer_of(name: str, tensor: Any) -> Buffer:
    dtype = own_type(tensor.dtype)
    if dtype is None:
        raise Unsupported(f"{name}, which the kernel has the address of, has elements of {tensor.dtype}")
    return host_buffer(name, tensor, dtype)


# Address, bytes and a reference of each array that was found, by the way of searching; of one launch.
_Extents = list[tuple[int, int, "weakref.ref[Any]"]]
_CENSUS: dict[str, tuple[int, _Extents]] = {}


def _searches() -> Iterator[Callable[[], _Extents]]:
    """Ways to find arrays, the quick one first; each searches at most once for a launch."""
    for name, search in (("tracked", _tracked_tensors), ("held", _held_tensors)):
        yield partial(_census, name, search)


def _census(name: str, search: Callable[[], Iterator[Any]]) -> _Extents:
    launch = launch_number()
    if name not in _CENSUS or _CENSUS[name][0] != launch:
        distinct = {id(tensor): tensor for tensor in search()}
        _CENSUS[name] = launch, [(*_extent(tensor), weakref.ref(tensor)) for tensor in distinct.values()]
    return _CENSUS[name][1]


def _variables() -> Iterator[tuple[str, Any]]:
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("bragg."):
            yield from frame.f_locals.items()
        frame = frame.f_back  # type: ignore[assignment]


def _tracked_tensors() -> Iterator[Any]:
    """What variables of running functions hold, and PyTorch's tensors, which the collector of garbage tracks."""
    yield from (value for _, value in _variables() if _TENSORS[type(value)])
    yield from [value for value in gc.get_objects() if _TENSORS[type(value)]]


def _held_tensors() -> Iterator[Any]:
    """NumPy's arrays, which are not tracked, in lists, tuples and dictionaries, which are."""
    for value in gc.get_objects():
        if type(value) in (list, dict, tuple):
            yield from [part for part in gc.get_referents(value) if _TENSORS[type(part)]]


class _Tensors(dict[type, bool]):
    """Types, and whether they are arrays; isinstance() would ask objects, and some of those alive warn when asked."""

    def __missing__(self, kind: type) -> bool:
        is_torch = kind.__name__ in ("Tensor", "Parameter") and kind.__module__.startswith("torch")
        found = self[kind] = is_torch or issubclass(kind, np.ndarray)
        return found


_TENSORS = _Tensors()


def _extent(tensor: Any) -> tuple[int, int]:
    """Address and bytes of an array that is contiguous and in host memory; (0, 0) for any other."""
    if isinstance(tensor, np.ndarray):
        return int(tensor.__array_interface__["data"][0]), tensor.nbytes if tensor.flags.c_contiguous else 0
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        return 0, 0
    return int(tensor.data_ptr()), int(tensor.numel() * tensor.element_size())
