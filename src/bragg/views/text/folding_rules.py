"""Which frames of Python are plumbing: the one table. `bragg view --keep REGEX` adds to what stays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

STANDARD = "stdlib"


@dataclass(frozen=True)
class _Library:
    """Files of one kind.

    Attributes:
        file: What is found in their paths; a group `package` names the library.
        name: Of the library, where no group does.
    """

    file: re.Pattern[str]
    name: str = ""


@dataclass(frozen=True)
class _Kept:
    """Frames of libraries that stay, since readers know them as parts of their program.

    Attributes:
        name: What their name is.
        unless: What is found in the paths of those that are plumbing all the same.
    """

    name: re.Pattern[str]
    unless: re.Pattern[str]


_LIBRARIES = (
    _Library(re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<package>[^/\\.]+)")),
    _Library(re.compile(r"[/\\]lib(?:64)?[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages)"), STANDARD),
    _Library(re.compile(r"[/\\]bragg[/\\]record[/\\]"), "bragg"),
    _Library(re.compile(r"^<frozen "), STANDARD),
    # Wrappers that PyTorch's compiler writes are named by their hash.
    _Library(re.compile(r"(?:^|[/\\])c[a-z2-7]{51}\.py$"), "torch"),
)
# Their calls begin and end the scope that stands below them.
_ANNOTATING = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]nvtx[/\\]"
    r"|[/\\]torch[/\\]cuda[/\\]nvtx\.py:"
    r"|[/\\]torch[/\\]autograd[/\\]profiler\.py:record_function\."
)
_KEPT = (
    # What a model computes, whatever package it lives in; decorators around it and `_call_impl` do not.
    _Kept(
        re.compile(r"(?:[^<]*\.)?forward"),
        re.compile(
            r"[/\\]torch[/\\](?:_dynamo|_functorch|_inductor|_higher_order_ops|fx|autograd|nn[/\\]parallel)[/\\]"
        ),
    ),
)


def library_of(file: str) -> str:
    """Package that a source file belongs to, `stdlib` for Python's own; empty for the user's files."""
    for library in _LIBRARIES:
        if match := library.file.search(file):
            return library.name or match["package"]
    return ""


def annotates(name: str, file: str) -> bool:
    """Whether a frame of a library only begins or ends scopes.

    Args:
        name: Of the function, with its class.
        file: Of its code.
    """
    return _ANNOTATING.search(f"{file}:{name}") is not None


def is_kept(name: str, file: str, also: Sequence[re.Pattern[str]] = ()) -> bool:
    """Whether a frame of a library stays.

    Args:
        name: Of the function, with its class where that is known.
        file: Of its code.
        also: What the user wants to see, in any part of a name.
    """
    if any(pattern.search(name) for pattern in also):
        return True
    return any(kept.name.fullmatch(name) and not kept.unless.search(file) for kept in _KEPT)
