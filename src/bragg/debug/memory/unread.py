"""Columns of a tensor that no program reads, because a mask compares them with the extent of another axis.

No access is wrong there, and the results are. What is meant is up to the author, so it is a note and not a finding: of
tensors whose number of columns the kernel was told, not as a stride only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bragg.code.python_nodes import parts_of
from bragg.debug.expressions import access_text
from bragg.debug.host.launch import Launch
from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners


class _Columns:
    """Which columns of a tensor the loads of a launch have read."""

    def __init__(self, launch: Launch, buffer: Buffer) -> None:
        self._buffer = buffer
        self._numbers = {name: value for name, value in launch.arguments.items() if type(value) is int}
        self._is_read = np.zeros(buffer.shape[-1], bool)
        self._mask, self._place = "", ("", 0)

    def see(self, access: Access) -> bool:
        """A load of the tensor; False: it reads all columns, or leaves them out for another reason."""
        self._place = access.place
        self._mask = access_text(*self._place, "load", self._buffer.name).mask
        compared = {self._numbers[name] for name in _compared_names(self._mask) & self._numbers.keys()}
        if len(self._is_read) in compared or not compared & set(self._buffer.shape[:-1]):
            return False
        self._is_read[access.offsets % len(self._is_read)] = True
        return not self._is_read.all()

    def note(self) -> str:
        """What is not read, and which mask leaves it out; empty: it is not all that follows an extent."""
        count, total, extents = int(self._is_read.sum()), len(self._is_read), self._buffer.shape[:-1]
        if count not in extents or not self._is_read[:count].all():
            return ""
        unread = f"{total - count} of {total} columns of {self._buffer.name} are read by no program"
        mask = f"the mask {self._mask} ({Path(self._place[0]).name}:{self._place[1]})"
        return f"{unread}: {mask} compares with {count}, the extent of axis {extents.index(count)}"


def unread_columns(launch: Launch, tell: Callable[[str], None]) -> Listeners:
    """Tell of columns that the launch has not read, when it has ended."""
    watched = {id(buffer): _Columns(launch, buffer) for buffer in launch.buffers if _is_told(launch, buffer)}
    if not watched or launch.only is not None:
        return Listeners()

    def look(access: Access) -> None:
        key = id(access.buffer)
        if access.kind == "load" and key in watched and not watched[key].see(access):
            del watched[key]

    def end() -> None:
        for note in filter(None, (columns.note() for columns in watched.values())):
            tell(note)

    return Listeners(access=[look], end=[end])


def _is_told(launch: Launch, buffer: Buffer) -> bool:
    """A contiguous tensor with a shorter axis, both of which the kernel was told."""
    shape = buffer.shape
    if len(shape) < 2 or buffer.strides[-1] != 1 or buffer.gaps is not None or buffer.first:
        return False
    numbers = [value for value in launch.arguments.values() if type(value) is int]
    strides = sum(stride == shape[-1] for one in launch.buffers for stride in one.strides)
    return numbers.count(shape[-1]) > strides and any(extent in numbers for extent in shape[:-1] if extent < shape[-1])


def _compared_names(text: str) -> set[str]:
    compared = list(parts_of(ast.parse(text), ast.Compare))
    return {part.id for node in compared for part in parts_of(node, ast.Name)}
