"""What a command line runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_PYTHON = re.compile(r"python[0-9.]*")
# Letters of Python's options that a value follows, in the same word or the next one.
_VALUED_OPTIONS = "cmWX"


def program_of(command: Sequence[str]) -> str:
    """The script or module of a command line of Python; of another command its name; of `-c` none."""
    words = iter(command)
    program = PurePath(next(words, "")).name
    if not _PYTHON.fullmatch(program):
        return program
    for word in words:
        if word == "-":
            break
        if not word.startswith("-"):
            return PurePath(word).name
        options = "" if word.startswith("--") else word[1:]
        valued = next((at for at, letter in enumerate(options) if letter in _VALUED_OPTIONS), None)
        if valued is None:
            continue
        value = options[valued + 1 :] or next(words, "")
        if options[valued] in "cm":
            return value if options[valued] == "m" else ""
    return program
