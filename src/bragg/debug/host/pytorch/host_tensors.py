"""Tensors that a program has put on the CPU: where there is no GPU all are there, and only these are meant to be."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class HostTensors:
    """Which tensors of a program a kernel on a GPU could not access.

    Attributes:
        are_refused: Kernels do not take them: the program asks for a GPU somewhere, and is not meant for the CPU.
    """

    def __init__(self) -> None:
        self.are_refused = False
        self._known: dict[int, weakref.ref[Any]] = {}

    def __contains__(self, tensor: object) -> bool:
        known = self._known.get(id(tensor))
        return known is not None and known() is tensor

    def placed(self, result: Any, source: Any, kinds: Sequence[str], *, is_authors: bool) -> Any:
        """What a call that names devices gives; another tensor of the same memory if it would give what it got.

        Args:
            result: What PyTorch gives, which is the source where that is there already.
            source: What is moved.
            kinds: The devices that are named: `cuda`, `cpu`.
            is_authors: The program calls it, and not PyTorch.
        """
        is_of_host = "cuda" not in kinds
        self.are_refused = self.are_refused or not is_of_host
        if is_of_host == (result in self) or (is_of_host and not is_authors) or getattr(result, "requires_grad", True):
            return result
        moved = result.view_as(result) if result is source else result
        if is_of_host:
            key = id(moved)
            self._known[key] = weakref.ref(moved, lambda _: self._known.pop(key, None))
        return moved

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Kernels take them: a GPU would not execute what is done here with tensors of the CPU."""
        before, self.are_refused = self.are_refused, False
        try:
            yield
        finally:
            self.are_refused = before


HOST_TENSORS = HostTensors()
