"""What differs between versions of Triton."""

from __future__ import annotations

import sys
from functools import cache


@cache
def is_before(major: int, minor: int) -> bool:
    """The Triton that is installed is older than a version."""
    version = sys.modules["triton"].__version__
    return tuple(int(part) for part in version.split(".")[:2]) < (major, minor)
