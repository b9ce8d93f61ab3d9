"""Tensors that are made for one launch after the other and never freed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.memory.storage import Buffer
from bragg.debug.report import Report
from bragg.debug.state import Listeners
from bragg.model import Severity

# Results of a few launches are alive in any program; a list that grows with every launch is not.
_FEWEST = 12
# Looking at all objects of a program takes 0.3 s when PyTorch is among them. Between two looks, tensors that were made
# together for later launches look like tensors made for each: fewer than _FEWEST of them.
_LAUNCHES_PER_LOOK = 4
_CONTAINERS = (list, tuple, dict, set)


@dataclass
class _Made:
    """A tensor that was made between two launches, and the launch that used it last."""

    tensor: ref[Any]
    used: int


@dataclass
class _History:
    """What the launches of a session were given.

    Attributes:
        launch: Number of the current launch.
        alive: Tensors that were alive when last looked, by identity.
        looked: When that was.
        made: Tensors made since the launch before they were passed, by kernel and parameter.
        previous: Number of the last launch of each kernel.
    """

    launch: int = 0
    alive: dict[int, ref[Any]] = field(default_factory=dict)
    looked: int = -_LAUNCHES_PER_LOOK
    made: dict[tuple[str, str], list[_Made]] = field(default_factory=dict)
    previous: dict[str, int] = field(default_factory=dict)

    def see(self, record: LaunchFindings) -> None:
        """Look at the tensors of a launch, and tell of those of earlier ones that nobody frees."""
        kernel = record.launch.kernel
        for buffer in record.launch.buffers:
            tensor = _whole(buffer.owner)
            if tensor is not None:
                self._use(kernel, buffer.name, tensor)
                self._tell(record, buffer)
        self.previous[kernel] = self.launch
        if self.launch - self.looked >= _LAUNCHES_PER_LOOK:
            self.alive, self.looked = {id(tensor): ref(tensor) for tensor in _tensors()}, self.launch
        self.launch += 1

    def _use(self, kernel: str, parameter: str, tensor: Any) -> None:
        known = [made for entries in self.made.values() for made in entries if made.tensor() is tensor]
        for made in known:
            made.used = self.launch
        before = self.alive.get(id(tensor))
        is_new = self.launch > 0 and (before is None or before() is not tensor)
        if is_new and not known:
            self.made.setdefault((kernel, parameter), []).append(_Made(ref(tensor), self.launch))

    def _tell(self, record: LaunchFindings, buffer: Buffer) -> None:
        kernel = record.launch.kernel
        entries = [made for made in self.made.get((kernel, buffer.name), []) if made.tensor() is not None]
        idle = [made for made in entries if made.used < self.previous.get(kernel, 0)]
        if entries:
            self.made[kernel, buffer.name] = entries
        if len(idle) >= _FEWEST:
            record.at_source(
                *_host_line(),
                f"tensors that earlier launches got as {buffer.name} were not used again and are still alive:"
                " their number grows with the launches",
                "Let go of them, or pass one tensor to all launches",
                Severity.WARNING,
                buffer,
            )


def _whole(owner: Any) -> Any:
    """The tensor that a view is part of; None for one that a backward pass will free."""
    base = getattr(owner, "_base", None) if hasattr(owner, "data_ptr") else getattr(owner, "base", None)
    if base is not None and (isinstance(base, np.ndarray) or hasattr(base, "data_ptr")):
        return _whole(base)
    return None if owner is None or getattr(owner, "requires_grad", False) else owner


def _tensors() -> Iterator[Any]:
    """All tensors of PyTorch, and NumPy's arrays in containers."""
    torch = sys.modules.get("torch")
    found = gc.get_objects()
    for thing in gc.get_referents(*(thing for thing in found if type(thing) in _CONTAINERS)):
        if type(thing) is np.ndarray:
            yield thing
    if torch is not None:
        yield from (thing for thing in found if issubclass(type(thing), torch.Tensor))


def _host_line() -> tuple[str, int]:
    """The author's line that makes the launch."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("bragg", "triton", "torch"):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


_HISTORIES: WeakKeyDictionary[Report, _History] = WeakKeyDictionary()


def _watch(record: LaunchFindings) -> Listeners:
    _HISTORIES.setdefault(record.report, _History()).see(record)
    return Listeners()


LEAKS = Checker("leak", "tensors that are made between launches and never freed", False, _watch)
