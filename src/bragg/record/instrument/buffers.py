"""Memory of the GPU for the readings of one launch, and which of its blocks write."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from bragg.code.instrument.rewriting import CONTROL_BYTES, HEADER_BYTES, WARP_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.instrument.driver import Driver

__all__ = ["Buffers", "Plan", "plan"]

_CONTROL = struct.Struct("<QQIIII")
assert _CONTROL.size == CONTROL_BYTES
_MAX_HEADER_BYTES = 4 << 20


@dataclass(frozen=True)
class Plan:
    """Which blocks of a launch write.

    Attributes:
        blocks: Of the launch.
        warps: Of a block.
        header_shift: One of 2^n blocks has headers.
        frame_shift: One of 2^n blocks has frames.
    """

    blocks: int
    warps: int
    header_shift: int
    frame_shift: int

    @property
    def header_bytes(self) -> int:
        """Of all headers."""
        return _share(self.blocks, self.header_shift) * self.warps * HEADER_BYTES

    @property
    def frame_bytes(self) -> int:
        """Of all frames."""
        return _share(self.blocks, self.frame_shift) * self.warps * WARP_BYTES

    def of_fewer(self, block_shift: int) -> Plan:
        """The same with frames of at most one of 2^n blocks."""
        return replace(self, frame_shift=max(self.frame_shift, block_shift))

    def control(self, headers: int, frames: int) -> bytes:
        """What the kernel's variable is set to."""
        masks = [(1 << shift) - 1 for shift in (self.header_shift, self.frame_shift)]
        return _CONTROL.pack(headers, frames, masks[0], self.header_shift, masks[1], self.frame_shift)


def plan(blocks: int, warps: int, limit_bytes: int) -> Plan:
    """The most blocks whose readings fit."""
    header_shift = _shift(blocks, _MAX_HEADER_BYTES // (warps * HEADER_BYTES))
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

    def control(self, own: Plan) -> bytes:
        """What a kernel's variable is set to, by its own plan, which needs no more memory."""
        return own.control(self._headers, self._frames)

    def read(self, own: Plan) -> tuple[bytes, bytes]:
        """Headers and frames."""
        headers = self._driver.read(self._headers, own.header_bytes)
        return headers, self._driver.read(self._frames, own.frame_bytes)


def _share(blocks: int, shift: int) -> int:
    return (blocks - 1 >> shift) + 1


def _shift(blocks: int, fitting: int) -> int:
    """The least shift with which so many blocks fit."""
    shift = 0
    while _share(blocks, shift) > max(fitting, 1):
        shift += 1
    return shift
