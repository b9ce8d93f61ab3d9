"""Files that a command writes beside its profile."""

from __future__ import annotations

from pathlib import Path

from bragg.errors import UsageError

_PAGE = b'<meta name="generator" content="bragg">'
_HEAD_BYTES = 1024


def refuse_existing(target: Path, force: bool) -> None:
    """Before the work begins: a file that is there is overwritten on request alone, unless it is a page of bragg.

    Raises:
        UsageError: The file exists, and `force` is not set.
    """
    if target.exists() and not force and not _is_page(target):
        raise UsageError(f"{target} exists", hint="Choose another name, or overwrite it with --force")


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _PAGE in file.read(_HEAD_BYTES)
    except OSError:
        return False


def write_text(target: Path, text: str) -> None:
    """Write a text file in UTF-8; what ends it halfway, as Ctrl-C does, leaves no file.

    Raises:
        BadFile: It cannot be written; says why.
    """
    from bragg.formats.files import new_file

    with new_file(target) as file:
        file.write(text.encode("utf-8"))
