"""JSON documents that need not fit in memory: the elements of one long list are handed out as they are read."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Any, BinaryIO

_READ_BYTES = 1 << 20
# Far above any event or header; a document that is one endless value must not fill the memory: a value takes up to 30
# bytes a character.
_MAX_VALUE_CHARS = 1 << 24
_IN_NUMBERS = "+-.eE0123456789"
_BLANK = re.compile(r"[ \t\n\r]*")
# Names of kernels and files come with control characters in them.
_DECODER = JSONDecoder(strict=False)


def read_list(file: BinaryIO, key: str, take: Callable[[Any], None]) -> dict[str, Any]:
    """Hand out the elements of a list, which is the document itself or the member `key` of its object.

    A document that is a list may break off after any element: trace writers do not close it when they are killed.

    Args:
        file: The document, UTF-8; bytes that are none become U+FFFD.
        key: Name of the member.
        take: Called with each element.

    Returns:
        The other members of the object; a member of that name that is not a list is among them.

    Raises:
        ValueError: The content is not JSON, or neither list nor object; also what `take` raises.
    """
    text = _Text(file)
    first = text.next()
    if first == "[":
        text.elements(take, may_break_off=True)
        return {}
    if first != "{":
        raise ValueError("neither a list nor an object")
    members: dict[str, Any] = {}
    n_kept = 0
    separator = text.next(keep=True)
    while separator != "}":
        name = _name(text.value())
        text.next(expected=":")
        if name == key and text.next(keep=True) == "[":
            text.next()
            text.elements(take)
        else:
            before = text.n_chars
            members[name] = text.value()
            n_kept += text.n_chars - before
            if n_kept > _MAX_VALUE_CHARS:
                raise ValueError(f"values beside {key} have more than {_MAX_VALUE_CHARS:,} characters")
        separator = text.next(expected=",}")
    return members


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a member of an object has no name")  # noqa: TRY004
    return value


class _Text:
    """A document as far as it was read; what lies behind is forgotten."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._buffer = ""
        self._at = 0
        self._n_forgotten = 0
        self._is_complete = False

    @property
    def n_chars(self) -> int:
        """Characters up to where it is read."""
        return self._n_forgotten + self._at

    def next(self, *, expected: str = "", keep: bool = False) -> str:
        """The next character that is not a blank; empty at the end.

        Args:
            expected: What it may be; empty for anything.
            keep: Whether it is still to be read.
        """
        while True:
            blank = _BLANK.match(self._buffer, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._buffer) or not self._read():
                break
        found = self._buffer[self._at : self._at + 1]
        if expected and (not found or found not in expected):
            raise ValueError(f"{found!r} where one of {expected!r} should stand" if found else "it breaks off")
        if not keep:
            self._at += 1
        return found

    def value(self) -> Any:
        """The next value."""
        self.next(keep=True)
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except JSONDecodeError as error:
                # Its place in the text is none in the file.
                if not self._read():
                    raise ValueError(f"it breaks off, or is not JSON: {error.msg}") from error
                continue
            except RecursionError as error:
                raise ValueError("values are nested too deeply") from error
            # A number may continue behind what was read.
            if (end < len(self._buffer) and self._buffer[end] not in _IN_NUMBERS) or not self._read():
                self._at = end
                return value

    def elements(self, take: Callable[[Any], None], *, may_break_off: bool = False) -> None:
        """The elements of a list whose bracket was read, and its end."""
        following = self.next(keep=True)
        while following and following != "]":
            take(self.value())
            following = self.next(keep=True)
            if following == ",":
                self.next()
                following = self.next(keep=True)
            elif following not in ("]", ""):
                raise ValueError(f"{following!r} after an element of a list")
        if not following and not may_break_off:
            raise ValueError("it breaks off")
        self.next()

    def _read(self) -> bool:
        """Read on, twice as much each time that a value does not end; whether there was anything."""
        if self._is_complete:
            return False
        pending = len(self._buffer) - self._at
        if pending > _MAX_VALUE_CHARS:
            raise ValueError(f"a value has more than {_MAX_VALUE_CHARS:,} characters")
        content = self._file.read(max(_READ_BYTES, pending))
        self._is_complete = not content
        self._n_forgotten += self._at
        self._buffer = self._buffer[self._at :] + self._decoder.decode(content, final=self._is_complete)
        self._at = 0
        return not self._is_complete or len(self._buffer) > pending
