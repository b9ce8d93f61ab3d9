"""Which files a user does not change."""

from __future__ import annotations

import re

# Installed packages, Python's own files, code that a compiler wrote.
_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3\.\d+[/\\]|^<|[/\\]c[a-z2-7]{51}\.py$"
)


def is_library(file: str) -> bool:
    """Whether a file is none that a user changes."""
    return bool(_LIBRARY.search(file))
