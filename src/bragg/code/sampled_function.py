"""Functions whose instructions were sampled, and who tells where these come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bragg.code.source_place import CallChain
from bragg.model.profile import Profile

__all__ = ["CodeReader", "SampledFunction"]


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


CodeReader = Callable[[Profile, Sequence[SampledFunction]], tuple[Profile, Sequence[Mapping[int, CallChain]]]]
"""Gives a profile the texts of its kernels, and tells of each sampled function where its instructions come from, by
their offset in bytes; what is not known is missing."""
