"""Functions whose instructions were sampled."""

from __future__ import annotations

from typing import NamedTuple


class SampledFunction(NamedTuple):
    """Code of a kernel that was sampled.

    Attributes:
        kernel: Name of the kernel's frames.
        symbol: Its name in its cubin.
        checksum: Of the cubin, as CUPTI computes it.
        cubin: The cubin; empty when it has no source lines, or was not kept.
    """

    kernel: str
    symbol: str
    checksum: int
    cubin: bytes
