"""Lines of the program, as those that call JAX."""

from __future__ import annotations

import re

from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3\.\d+[/\\]")


def line_of_program(frame: FrameType | None) -> str:
    """File and line outside of libraries that this frame is called from; empty: it is of an import, or unknown."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return ""
        if not _LIBRARY.search(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@guarded
def leave_out(file: str) -> None:
    """Let lines of JAX's operations be those of the program, not of this file, which calls it."""
    from jax._src.source_info_util import register_exclusion

    register_exclusion(file)
