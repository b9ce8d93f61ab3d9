"""The texts of a program's own Python files, which a profile gets when it is made.

Rules read in them what operators do not tell: which arguments a call has, and where a value comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bragg.model import FrameKind, Profile
from bragg.model.library_files import is_library

_MAX_FILE_BYTES, _MAX_BYTES = 512 << 10, 4 << 20  # a long file of a program has 200 kB


def with_program_texts(profile: Profile) -> Profile:
    """The profile with the texts of files that its call paths name, as far as these are as they were when it began.

    What is long, is gone, or has changed since, is left out.
    """
    found = dict(_texts(profile))
    return replace(profile, sources={**found, **profile.sources}) if found else profile


def _texts(profile: Profile) -> Iterator[tuple[str, str]]:
    left_bytes, began_ns = _MAX_BYTES, profile.run.started_ns
    for file in _files(profile):
        try:
            path = Path(str(profile.meta.get("cwd", "")), file)
            facts = path.stat()
            if facts.st_size > min(_MAX_FILE_BYTES, left_bytes) or (began_ns or 0) < facts.st_mtime_ns:
                continue
            yield file, path.read_text(encoding="utf-8")
            left_bytes -= facts.st_size
        except (OSError, ValueError):  # not here, a name that can be none, or no text
            continue


def _files(profile: Profile) -> list[str]:
    """Of the program's own Python code, each once."""
    frames = profile.tree.frames
    named = (
        file for kind, file in zip(frames.kind.tolist(), frames.file, strict=True) if kind == FrameKind.PYTHON and file
    )
    return [file for file in dict.fromkeys(named) if file not in profile.sources and not is_library(file)]
