"""Source lines of sampled instructions, from the line table of their cubin."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from bragg.model.source_place import CallChain
from bragg.record.cubin import Cubin

__all__ = ["read_lines"]


def read_lines(image: bytes) -> Callable[[str, int], CallChain]:
    """A function that tells where the instruction of a kernel at an offset comes from; empty when that is not known.

    Args:
        image: A cubin.

    Raises:
        ValueError: It is none, or a damaged one.
    """
    cubin = Cubin.of(image)

    @cache
    def chains_of(symbol: str) -> dict[int, CallChain]:
        try:
            return {instruction.offset_bytes: instruction.chain for instruction in cubin.code(symbol, {}, "")}
        except ValueError:  # what the driver adds to a cubin is not in it
            return {}

    return lambda symbol, offset_bytes: chains_of(symbol).get(offset_bytes, ())
