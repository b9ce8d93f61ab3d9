"""JSON nested deeper than the standard library follows: call paths can be deeper than a call stack."""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecoder
from typing import Any

import numpy as np

from bragg.formats.limits import Limits

_TOKEN = re.compile(r'[ \t\n\r]*([][{},:"]|[^][{},:"\s]+|$)')
_DECODER = JSONDecoder()
# An empty list and its place in the list around it.
_VALUE_BYTES = 72


def loads(content: bytes, limits: Limits | None = None) -> Any:
    """Read a JSON value, of whatever depth.

    Args:
        content: The text.
        limits: What the value may take; None: anything.

    Raises:
        ValueError: The content is not JSON, or would take too much.
    """
    if limits is not None:
        limits.check_memory(memory_bytes(content))
    try:
        return json.loads(content)
    except RecursionError:
        return _Reader(content.decode()).value()


def memory_bytes(content: bytes, separator: bytes = b",") -> int:
    """Upper estimate of the memory that reading a JSON value takes: text, twice as string, and 72 bytes for each value.

    Args:
        content: The text.
        separator: What stands between values; between strings, whose commas would count as values, it is `","`.
    """
    highest = int(np.frombuffer(content, np.uint8).max(initial=0))
    # The first byte of UTF-8 of letters beyond 16 and 8 bits.
    letter_bytes = 4 if highest >= 0xF0 else 2 if highest >= 0xC4 else 1
    return (1 + 2 * letter_bytes) * len(content) + _VALUE_BYTES * sum(map(content.count, (separator, b"[", b"{")))


class _Reader:
    """Reads a value with a stack of its own, several times slower than the standard library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self) -> Any:
        """The only value of the text."""
        open_values: list[Any] = []
        keys: list[str] = []
        while True:
            token = self._token()
            if token in ("[", "{"):
                open_values.append([] if token == "[" else {})
                if not self._is_next(_end(open_values[-1])):
                    if token == "{":
                        keys.append(self._key())
                    continue
                value = open_values.pop()
            else:
                value = self._scalar(token)
            while open_values:
                self._add(open_values[-1], keys, value)
                if self._is_next(","):
                    if isinstance(open_values[-1], dict):
                        keys.append(self._key())
                    break
                self._expect(_end(open_values[-1]))
                value = open_values.pop()
            else:
                self._expect("")
                return value

    @staticmethod
    def _add(container: Any, keys: list[str], value: Any) -> None:
        if isinstance(container, dict):
            container[keys.pop()] = value
        else:
            container.append(value)

    def _key(self) -> str:
        self._expect('"')
        key = self._rest_of_text()
        self._expect(":")
        return key

    def _scalar(self, token: str) -> Any:
        return self._rest_of_text() if token == '"' else json.loads(token)

    def _rest_of_text(self) -> str:
        text, self._at = _DECODER.raw_decode(self._text, self._at - 1)
        return str(text)

    def _is_next(self, wanted: str) -> bool:
        before = self._at
        if self._token() == wanted:
            return True
        self._at = before
        return False

    def _expect(self, wanted: str) -> None:
        found = self._token()
        if found != wanted:
            raise ValueError(f"{found!r} where {wanted!r} should stand, at character {self._at}")

    def _token(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise ValueError(f"a strange blank at character {self._at}")
        self._at = match.end()
        return match[1]


def _end(container: Any) -> str:
    return "}" if isinstance(container, dict) else "]"
