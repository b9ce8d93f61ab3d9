"""Which tensors a program has taken addresses of, and which of those are gone.

Kernels that load pointers from memory work on whatever lies at an address: a tensor that was freed, or another one that
got its memory since.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.debug.host.imports import on_import
from bragg.debug.memory.storage import Buffer
from bragg.model.table import Array

# Entries of programs that take addresses for ever; those that count are recent.
_MOST = 1 << 14


@dataclass(frozen=True)
class Extent:
    """Memory of a tensor.

    Attributes:
        address: In bytes.
        size_bytes: Its length.
        what: The tensor in words.
        place: File and line that took its address; empty: a launch got it.
        is_gone: Says whether the memory was freed.
    """

    address: int
    size_bytes: int
    what: str
    place: tuple[str, int] | None
    is_gone: Callable[[], bool]

    def holds(self, address: int) -> bool:
        """An address is in it."""
        return self.address <= address < self.address + self.size_bytes


_TAKEN: deque[Extent] = deque(maxlen=_MOST)
# By where they begin.
_LAUNCHED: dict[int, Extent] = {}
# An entry for each block in which addresses are remembered.
_OPEN: list[None] = []


def freed(address: int) -> Extent | None:
    """The memory around an address that was freed; None: none that is known, or it is in use."""
    known = [one for entries in (_TAKEN, _LAUNCHED.values()) for one in entries if one.holds(address)]
    return known[-1] if known and all(one.is_gone() for one in known) else None


def suspicious(addresses: Array) -> list[int]:
    """Those of some addresses, int64 [any], where a tensor was whose address was taken and that is gone."""
    gone = [one for one in _TAKEN if one.is_gone()]
    if not gone:
        return []
    starts = np.array([one.address for one in gone])
    ends = starts + np.array([one.size_bytes for one in gone])
    distinct = np.unique(addresses)
    return [address for address in distinct.tolist() if ((starts <= address) & (address < ends)).any()]


def replaced(address: int) -> Extent | None:
    """The tensor whose address was taken and that is gone, where nobody has taken that of the one there now."""
    taken = [one for one in _TAKEN if one.holds(address)]
    return taken[-1] if taken and all(one.is_gone() for one in taken) else None


def remember(buffer: Buffer, kernel: str) -> None:
    """Remember a tensor that a launch got."""
    start = buffer.address + buffer.low * buffer.dtype.size_bytes
    before = _LAUNCHED.get(start)
    if not len(buffer.flat) or (before is not None and not before.is_gone()):
        return
    is_gone = _watch(buffer.owner)
    if is_gone is not None:
        what = f"{buffer.name} of {kernel} ({buffer.dtype}{list(map(int, buffer.shape))})"
        _LAUNCHED[start] = Extent(start, buffer.flat.nbytes, what, None, is_gone)
        if len(_LAUNCHED) > _MOST:
            del _LAUNCHED[next(iter(_LAUNCHED))]


def _watch(owner: Any) -> Callable[[], bool] | None:
    """What says whether the memory of an array is gone; None: nothing can."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        from torch.multiprocessing.reductions import StorageWeakRef

        return StorageWeakRef(owner.untyped_storage()).expired  # type: ignore[no-any-return]
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    try:
        kept = weakref.ref(owner)
    except TypeError:
        return None
    return lambda: kept() is None


@contextmanager
def remembered_addresses() -> Iterator[None]:
    """Remember the tensors of PyTorch that the program asks for their addresses, inside of a block.

    Nothing is remembered when the outermost block has ended: addresses that are taken later would not be seen.
    """
    with ExitStack() as stack:
        _OPEN.append(None)
        stack.callback(_forget)

        def watch_torch(torch: Any) -> None:
            for owner in (torch.Tensor, torch.UntypedStorage):
                stack.enter_context(_replaced(owner))

        with on_import("torch", watch_torch):
            yield


def _forget() -> None:
    _OPEN.pop()
    if not _OPEN:
        _TAKEN.clear()
        _LAUNCHED.clear()


@contextmanager
def _replaced(owner: Any) -> Iterator[None]:
    before, is_own = owner.data_ptr, "data_ptr" in vars(owner)

    def data_ptr(self: Any) -> Any:
        address = before(self)
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__", "").split(".")[0] not in ("bragg", "torch", "triton"):
            _take(self, address, (frame.f_code.co_filename, frame.f_lineno))
        return address

    owner.data_ptr = data_ptr
    try:
        yield
    finally:
        if is_own:
            owner.data_ptr = before
        else:
            del owner.data_ptr


def _take(taken: Any, address: int, place: tuple[str, int]) -> None:
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef

    is_tensor = isinstance(taken, torch.Tensor)
    if is_tensor and type(taken) not in (torch.Tensor, torch.nn.Parameter):
        return
    storage = taken.untyped_storage() if is_tensor else taken
    if storage.device.type != "cpu":
        return
    size_bytes = storage.nbytes() - (taken.storage_offset() * taken.element_size() if is_tensor else 0)
    what = f"{str(taken.dtype).removeprefix('torch.')}{list(taken.shape)}" if is_tensor else f"{size_bytes} bytes"
    _TAKEN.append(Extent(address, size_bytes, f"a tensor ({what})", place, StorageWeakRef(storage).expired))
