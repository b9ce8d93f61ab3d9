"""The files that a session leaves, in Proton's formats."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bragg.formats import hatchet
from bragg.formats.encodings import msgpack
from bragg.model import Profile
from bragg.proton.errors import InvalidArgument
from bragg.proton.output.trace_file import write_trace
from bragg.proton.output.view import has_texts, proton_tree, proton_view

__all__ = ["FORMATS", "choose_format", "print_file", "write"]


def _write_json(profile: Profile | None, path: Path) -> None:
    if profile is not None and not has_texts(profile):
        hatchet.write(proton_view(profile), path)
        return
    text = json.dumps(proton_tree(profile), indent=4, sort_keys=True, ensure_ascii=False)
    path.write_text(f"\n{text}\n", encoding="utf-8", errors="surrogatepass")


def _write_msgpack(profile: Profile | None, path: Path) -> None:
    path.write_bytes(msgpack.encode(proton_tree(profile)))


# By name, which is also the suffix of the file.
FORMATS: dict[str, Callable[[Profile | None, Path], None]] = {
    "hatchet": _write_json,
    "hatchet_msgpack": _write_msgpack,
    "chrome_trace": write_trace,
}
_DEFAULTS = {"tree": "hatchet", "trace": "chrome_trace"}


def choose_format(data: str, wanted: str | None) -> str:
    """The format of a session's files.

    Args:
        data: What the session keeps.
        wanted: By the user; empty or None is the default for the data.

    Raises:
        InvalidArgument: It is unknown, or shows what was not kept.
    """
    if not wanted:
        return _DEFAULTS[data]
    if wanted not in FORMATS:
        raise InvalidArgument(f"Unknown output format: {wanted}", hint=f"Choose one of: {', '.join(FORMATS)}")
    if wanted == "chrome_trace" and data != "trace":
        raise InvalidArgument(f"Output format not supported: {wanted} of {data} data", hint='start(data="trace")')
    return wanted


def write(profile: Profile | None, path: Path, format_name: str) -> None:
    """Write a file.

    Args:
        profile: As it was recorded; None: nothing was.
        path: The file.
        format_name: One of `FORMATS`.

    Raises:
        OSError: It cannot be written.
    """
    FORMATS[format_name](profile, path)


def print_file(path: Path) -> None:
    """Write a file to standard output."""
    sys.stdout.flush()
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()
