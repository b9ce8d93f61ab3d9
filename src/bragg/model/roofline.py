"""A roofline: what kernels reached, and what their device lets them reach at their arithmetic intensity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Roof", "Roofline", "RooflinePoint"]


@dataclass(frozen=True)
class Roof:
    """The limits of one device.

    Attributes:
        device: Its name.
        bytes_per_s: Memory bandwidth; None when unknown.
        flops_per_s: By width in bits; empty when unknown.
        source: Where the rates are from.
        missing: What is unknown and why; empty when all is known.
    """

    device: str
    bytes_per_s: float | None
    flops_per_s: Mapping[int, float]
    source: str
    missing: str


@dataclass(frozen=True)
class RooflinePoint:
    """One kernel, or one scope that was given flops or bytes, added up over all call paths.

    Attributes:
        name: Of the kernel or scope.
        roof: Row of the roofline's roofs; None when its device is unknown or several.
        time_ns: GPU time.
        flops: Of all widths.
        bytes: To and from memory.
        compute_ns: Time that its flops take at least; None when no peak is known.
        memory_ns: Time that its bytes take at least; None when no bandwidth is known.
        absent: Why it has no place in the chart; empty when it has one.
    """

    name: str
    roof: int | None
    time_ns: float
    flops: float
    bytes: float
    compute_ns: float | None
    memory_ns: float | None
    absent: str

    @property
    def intensity(self) -> float | None:
        """Flops per byte; None without bytes."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def flops_per_s(self) -> float | None:
        """What it reached; None without GPU time."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        """What it reached; None without GPU time."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else None

    @property
    def util(self) -> float | None:
        """Share of the roof that it reached; its reciprocal is how much faster it could be. None without a roof."""
        if self.compute_ns is None or self.memory_ns is None or not self.time_ns:
            return None
        return max(self.compute_ns, self.memory_ns) / self.time_ns

    @property
    def bound(self) -> str | None:
        """The roof above it: `compute` or `memory`; None without a roof."""
        if self.compute_ns is None or self.memory_ns is None:
            return None
        return "compute" if self.compute_ns > self.memory_ns else "memory"

    def to_json(self) -> dict[str, Any]:
        """What is known of it and what follows from that: JSON values."""
        return {
            **asdict(self),
            "intensity": self.intensity,
            "flops_per_s": self.flops_per_s,
            "bytes_per_s": self.bytes_per_s,
            "util": self.util,
            "bound": self.bound,
        }


@dataclass(frozen=True)
class Roofline:
    """All points, those with most GPU time first, and the roofs over them.

    Attributes:
        roofs: One for each kind of device.
        points: See `RooflinePoint`.
        time_ns: GPU time of the whole profile.
        widths: Widths in bits of the flops that were counted, ascending.
    """

    roofs: tuple[Roof, ...]
    points: tuple[RooflinePoint, ...]
    time_ns: float
    widths: tuple[int, ...]
