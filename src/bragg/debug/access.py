"""One load, store or atomic of all active programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bragg.debug.dtypes import DType
from bragg.debug.state import machine
from bragg.debug.values import Tensor, lift_array

if TYPE_CHECKING:
    from bragg.debug.storage import Buffer

__all__ = ["Access"]

Array = npt.NDArray[Any]


@dataclass
class Access:
    """What is about to be read or written.

    Attributes:
        kind: `load`, `store` or `atomic`.
        buffer: The tensor.
        offset: int64 elements.
        mask: bool, [programs or 1, *block]; None: every lane.
        dtype: Of what is read or written.
        order: `relaxed`, `acquire`, `release`, `acq_rel`; empty for loads and stores.
    """

    kind: str
    buffer: Buffer
    offset: Tensor
    mask: Array | None
    dtype: DType
    order: str = ""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """[active programs, *block]."""
        return len(machine().rows), *self.offset.shape

    @cached_property
    def _chosen(self) -> Array | None:
        """Flat positions of the lanes that take part, in the order of programs; None: all."""
        if self.mask is None:
            return None
        return np.flatnonzero(np.broadcast_to(lift_array(self.mask, len(self.shape)), self.shape))

    @cached_property
    def offsets(self) -> Array:
        """int64 [lanes]: element offsets of the lanes that take part."""
        if self._chosen is None:
            return np.broadcast_to(self.offset.data, self.shape).reshape(-1)
        if self.offset.programs == self.shape[0]:
            return self.offset.data.reshape(-1)[self._chosen]
        return np.broadcast_to(self.offset.data, self.shape).reshape(-1)[self._chosen]

    @cached_property
    def programs(self) -> Array:
        """int64 [lanes]: linear number of each lane's program."""
        active = machine().active_programs
        lanes = int(np.prod(self.shape[1:], dtype=np.int64))
        if self._chosen is None:
            return np.repeat(active, lanes)
        result: Array = active[self._chosen // lanes]
        return result

    @cached_property
    def lane_numbers(self) -> Array:
        """int64 [lanes]: flat position of each lane in its block."""
        lanes = int(np.prod(self.shape[1:], dtype=np.int64))
        chosen = np.arange(int(np.prod(self.shape, dtype=np.int64))) if self._chosen is None else self._chosen
        return chosen % max(lanes, 1)
