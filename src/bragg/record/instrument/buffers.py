"""Memory of the GPU for the readings of one launch, and which of its blocks write."""

from __future__ import annotations

import struct
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from bragg.code.instrument.rewriting import CONTROL_BYTES, HEADER_BYTES
from bragg.code.instrument.storing import WARP_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.instrument.driver import Driver


_CONTROL = struct.Struct("<QQIIII")
assert _CONTROL.size == CONTROL_BYTES
_MAX_HEADER_BYTES = 4 << 20
# Of fewer waves, the first is too much to be called a sample.
_LEAST_WAVES = 8


@dataclass(frozen=True)
class Plan:
    """Which blocks of a launch write.

    Attributes:
        blocks: Of the launch.
        warps: Of a block.
        header_shift: One of 2^n blocks has headers.
        frame_shift: One of 2^n blocks has frames.
        first_blocks: So many have both, and the shifts are those of the later ones.
        frame_warps: Warps of a block that have frames; empty: all.
    """

    blocks: int
    warps: int
    header_shift: int
    frame_shift: int
    first_blocks: int = 0
    frame_warps: tuple[int, ...] = ()

    @cached_property
    def chosen_warps(self) -> tuple[int, ...]:
        """Warps of a block that have frames."""
        return self.frame_warps or tuple(range(self.warps))

    @property
    def header_bytes(self) -> int:
        """Of all headers."""
        return self.header_blocks * self.warps * HEADER_BYTES

    @property
    def frame_bytes(self) -> int:
        """Of all frames."""
        return self.frame_blocks * len(self.chosen_warps) * WARP_BYTES

    @property
    def header_blocks(self) -> int:
        """Blocks that have headers."""
        return _count(self.blocks, self.header_shift, self.first_blocks)

    @property
    def frame_blocks(self) -> int:
        """Blocks that have frames."""
        return _count(self.blocks, self.frame_shift, self.first_blocks)

    def sampled(self, block_shift: int, first_blocks: int, frame_warps: tuple[int, ...]) -> Plan:
        """The same with frames of some warps alone, in the first blocks and at most one of 2^n of the others.

        With n > 0, other blocks have no headers either. It needs no more memory. Where that does not suffice for the
        first blocks, or they are a large part of all, they are as the others.
        """
        frame_shift = max(self.frame_shift, block_shift)
        header_shift = frame_shift if block_shift else self.header_shift
        few = replace(self, header_shift=header_shift, frame_shift=frame_shift, frame_warps=frame_warps)
        more = replace(few, first_blocks=min(first_blocks, self.blocks))
        fits = more.header_bytes <= self.header_bytes and more.frame_bytes <= self.frame_bytes
        return more if fits and more.first_blocks * _LEAST_WAVES <= self.blocks else few

    def control(self, headers: int, frames: int) -> bytes:
        """What the kernel's variable is set to."""
        masks = [(1 << shift) - 1 for shift in (self.header_shift, self.frame_shift)]
        warps = sum(1 << warp for warp in self.chosen_warps)
        return _CONTROL.pack(headers, frames, *masks, self.first_blocks, warps)


def plan(blocks: int, warps: int, limit_bytes: int, header_limit_bytes: int = _MAX_HEADER_BYTES) -> Plan:
    """The most blocks whose readings fit."""
    header_shift = _shift(blocks, header_limit_bytes // (warps * HEADER_BYTES))
    frame_shift = _shift(blocks, limit_bytes // (warps * WARP_BYTES))
    return Plan(blocks, warps, header_shift, max(frame_shift, header_shift))


class Buffers:
    """Allocated memory, which is never given back: `cuMemFree` waits for all that the program has launched."""

    def __init__(self, driver: Driver, wanted: Plan) -> None:
        self._driver = driver
        self.plan = wanted
        self._headers = driver.zeros(wanted.header_bytes)
        # Frames of a warp are aligned to their size.
        self._frames = -(-driver.zeros(wanted.frame_bytes + WARP_BYTES) // WARP_BYTES) * WARP_BYTES

    def cleared(self, blocks: int) -> Buffers:
        """The same memory for another launch of the kernel: the most blocks whose readings fit.

        What was stored is lost; nothing writes any more.
        """
        found = copy(self)
        found.plan = plan(blocks, self.plan.warps, self.plan.frame_bytes, self.plan.header_bytes)
        self._driver.clear(self._headers, self.plan.header_bytes)
        self._driver.clear(self._frames, self.plan.frame_bytes)
        return found

    def control(self, own: Plan) -> bytes:
        """What a kernel's variable is set to, by its own plan, which needs no more memory."""
        return own.control(self._headers, self._frames)

    def headers(self, own: Plan) -> bytes:
        """Headers alone."""
        return self._driver.read(self._headers, own.header_bytes)

    def read(self, own: Plan) -> tuple[bytes, bytes]:
        """Headers and frames."""
        return self.headers(own), self._driver.read(self._frames, own.frame_bytes)


def _count(blocks: int, shift: int, first: int = 0) -> int:
    """The first blocks, and one of 2^n of the others."""
    return first + -(first - blocks >> shift)


def _shift(blocks: int, fitting: int) -> int:
    """The least shift with which so many blocks fit."""
    shift = 0
    while _count(blocks, shift) > max(fitting, 1):
        shift += 1
    return shift
