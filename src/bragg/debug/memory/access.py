"""One load, store or atomic of all active programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bragg.debug.flow.place import kernel_line
from bragg.debug.lazy import lazy
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.dtypes import DType
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import machine
from bragg.debug.values import Tensor, lift_array
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.memory.storage import Buffer


@dataclass
class Access:
    """What is about to be read or written.

    Attributes:
        kind: `load`, `store` or `atomic`.
        buffer: The tensor.
        offset: int64 elements.
        mask: bool, [programs or 1, *block]; None: every lane.
        dtype: Of what is read or written.
        order: `relaxed`, `acquire`, `release`, `acq_rel`; empty for loads and stores that are not volatile.
        value: What a store writes; None for other kinds.
        scope: Of an atomic: `cta`, `gpu`, `sys`; empty for other kinds.
        unwritten: bool [lanes that take part]: a listener's word that nobody has written these; None: all are known.
        origin: A listener's mark of the load, one of `LOADS`; 0: it has none.
    """

    kind: str
    buffer: Buffer
    offset: Tensor
    mask: Array | None
    dtype: DType
    order: str = ""
    value: Tensor | None = None
    scope: str = ""
    unwritten: Array | None = None
    origin: int = 0

    @lazy
    def place(self) -> tuple[str, int]:
        """File and line that the kernel executes."""
        return kernel_line()

    @property
    def is_strong(self) -> bool:
        """Programs may do it at the same time: an atomic that reaches beyond its own program, or a volatile load."""
        return bool(self.order) and self.scope != "cta"

    @lazy
    def closed(self) -> Affine | None:
        """The lanes that take part in closed form, one base for each active program; None: they have none."""
        block = affine_of(self.offset)
        if block is None:
            return None
        base = block.base if len(block.base) == self.shape[0] else np.broadcast_to(block.base, self.shape[0])
        if self.mask is None:
            return Affine(base, block.strides, block.shape)
        count = prefix(self.mask, block.shape)
        return Affine(base, block.strides, (count,)) if count else None

    @lazy
    def shape(self) -> tuple[int, ...]:
        """[active programs, *block]."""
        return len(machine().rows), *self.offset.shape

    @lazy
    def _chosen(self) -> Array | None:
        """Flat positions of the lanes that take part, in the order of programs; None: all."""
        if self.mask is None:
            return None
        return np.flatnonzero(np.broadcast_to(lift_array(self.mask, len(self.shape)), self.shape))

    @lazy
    def offsets(self) -> Array:
        """int64 [lanes]: element offsets of the lanes that take part."""
        if self._chosen is None:
            data = self.offset.data
            return (data if len(data) == self.shape[0] else np.broadcast_to(data, self.shape)).reshape(-1)
        if self.offset.programs == self.shape[0]:
            return self.offset.data.reshape(-1)[self._chosen]
        return np.broadcast_to(self.offset.data, self.shape).reshape(-1)[self._chosen]

    @lazy
    def programs(self) -> Array:
        """int64 [lanes]: linear number of each lane's program."""
        return self.programs_of(machine().active_programs)

    def programs_of(self, active: Array) -> Array:
        """The same, of the programs that were active when it happened: int64 [active]."""
        lanes = math.prod(self.shape[1:])
        if self._chosen is None:
            return np.repeat(active, lanes)
        result: Array = active[self._chosen // lanes]
        return result

    @lazy
    def lane_numbers(self) -> Array:
        """int64 [lanes]: flat position of each lane in its block."""
        lanes = math.prod(self.shape[1:])
        chosen = np.arange(math.prod(self.shape)) if self._chosen is None else self._chosen
        return chosen % max(lanes, 1)

    def unwritten_block(self) -> Array:
        """bool, [active programs, *block]: lanes that read what nobody has written."""
        whole = np.zeros(math.prod(self.shape), bool)
        whole[slice(None) if self._chosen is None else self._chosen] = self.unwritten
        return whole.reshape(self.shape)

    def lane_values(self) -> Array:
        """What a store writes, in the carrier of its type: one value for each lane that takes part, [n_lanes]."""
        assert self.value is not None
        whole = np.broadcast_to(self.value.data, self.shape)
        if self.mask is None:
            return whole.reshape(-1)
        result: Array = whole[np.broadcast_to(lift_array(self.mask, len(self.shape)), self.shape)]
        return result


def prefix(mask: Array, shape: tuple[int, ...]) -> int | None:
    """How many lanes a mask, bool [programs or 1, *block], leaves on: of the first ones, in all programs; else None."""
    if len(shape) != 1 or mask.shape != (1, *shape):
        return None
    count = int(np.count_nonzero(mask))
    return count if mask[0, :count].all() else None
