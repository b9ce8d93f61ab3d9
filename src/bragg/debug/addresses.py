"""Which tensor lies at an address: for kernels that load pointers from memory.

The tensors of the launch are known. Others, whose `data_ptr()` the program put into a table, are looked for among the
objects that are alive in this process.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bragg.debug.dtypes import DTYPES
from bragg.debug.state import machine
from bragg.debug.storage import LIVE, Buffer

__all__ = ["NOWHERE", "buffers_at"]

# What an address points into that is in no tensor: every access there is out of bounds.
NOWHERE = Buffer("memory of no tensor", DTYPES["uint8"], np.zeros(0, np.uint8), (0,), (1,), 0)


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


def _known(address: int) -> Buffer | None:
    """The smallest tensor of the launch around an address; one that starts there is preferred."""
    known = [buffer for buffer in LIVE.values() if buffer.spans(address)]
    return min(known, key=lambda one: (one.address != address, one.flat.nbytes)) if known else None


def _buffers_of(addresses: set[int]) -> Iterator[Buffer]:
    from bragg.debug.arguments import Arguments

    named = {id(value): name for name, value in _variables()}
    for tensor in _live_tensors():
        start, size = _extent(tensor)
        if any(start <= address < start + size for address in addresses):
            yield Arguments().convert(named.get(id(tensor), f"tensor at {start:#x}"), tensor).buffer


def _variables() -> Iterator[tuple[str, Any]]:
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("bragg."):
            yield from frame.f_locals.items()
        frame = frame.f_back  # type: ignore[assignment]


def _live_tensors() -> Iterator[Any]:
    """PyTorch's tensors are tracked by the collector of garbage; NumPy's arrays stand in what is tracked."""
    seen: set[int] = set()
    tracked = gc.get_objects()
    for value in (*(value for _, value in _variables()), *tracked):
        if _is_tensor(value):
            candidates = [value]
        elif type(value) in (list, dict, tuple):
            candidates = [part for part in gc.get_referents(value) if _is_tensor(part)]
        else:
            continue
        for one in candidates:
            if id(one) not in seen:
                seen.add(id(one))
                yield one


def _is_tensor(value: Any) -> bool:
    kind = type(value)  # isinstance() would ask the object, and some of those that are alive warn when asked.
    is_torch = kind.__name__ in ("Tensor", "Parameter") and kind.__module__.startswith("torch")
    return is_torch or issubclass(kind, np.ndarray)


def _extent(tensor: Any) -> tuple[int, int]:
    """Address and bytes of an array that is contiguous and in host memory; (0, 0) for any other."""
    if isinstance(tensor, np.ndarray):
        return int(tensor.__array_interface__["data"][0]), tensor.nbytes if tensor.flags.c_contiguous else 0
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        return 0, 0
    return int(tensor.data_ptr()), int(tensor.numel() * tensor.element_size())
