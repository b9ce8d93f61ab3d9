"""Where a kernel is: the frame that executes it, and its line."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import FrameType

__all__ = ["MARK", "is_kernel", "kernel_line"]

# The global name by which rewritten code reaches the engine: whoever has it is a kernel.
MARK = "_bragg"


def is_kernel(frame: FrameType) -> bool:
    """A frame executes a kernel or a function that kernels call."""
    return MARK in frame.f_globals


def kernel_line() -> tuple[str, int]:
    """File and line that the kernel executes; the innermost one that is the author's, not Triton's own."""
    first = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if MARK in frame.f_globals:
            name = frame.f_code.co_filename
            if _is_authors(name):
                return name, frame.f_lineno
            if first is None and not name.startswith("<lambda"):
                first = name, frame.f_lineno
        frame = frame.f_back
    return first or ("", 0)


@lru_cache(maxsize=256)
def _is_authors(filename: str) -> bool:
    """Code is neither Triton's own nor without a file."""
    return not filename.startswith("<lambda") and "triton/language/" not in filename.replace("\\", "/")
