"""Buckets of durations, whose counts give percentiles: 1 ns wide below 16 ns, then 16 in each octave.

Without numpy, which a program that is recorded may not have loaded. The native recorder has the same rule
(`native/data/durations.h`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    import numpy as np
    from numpy.typing import NDArray

    _Ns = TypeVar("_Ns", int, NDArray[np.int64])

__all__ = ["STEPS", "STEP_BITS", "bucket_in_octave", "bucket_of"]

STEP_BITS = 4
STEPS = 1 << STEP_BITS


def bucket_of(duration_ns: int) -> int:
    """The bucket of one duration."""
    return bucket_in_octave(duration_ns, max(duration_ns.bit_length() - STEP_BITS, 1))


def bucket_in_octave(duration_ns: _Ns, octave: _Ns) -> _Ns:
    """The bucket of a duration, or of each in an array.

    Args:
        duration_ns: 0 or more.
        octave: Its bits, less `STEP_BITS`; at least 1.
    """
    return (octave << STEP_BITS) + (duration_ns >> (octave - 1)) - STEPS
