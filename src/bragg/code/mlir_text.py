"""Source places of the lines of TTIR and TTGIR, from the `loc(...)` that MLIR prints."""

from __future__ import annotations

import re

from bragg.code.source_place import MAX_CALLS, CallChain, SourcePlace

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|#loc\d*|[A-Za-z_]\w*|\d+|.)', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)")


def places_of_mlir(text: str) -> list[CallChain]:
    """Where each line of a module comes from, one chain a line.

    An operation that spans lines has its place where it begins, its region's operations have their own.
    """
    lines = text.splitlines()
    aliases = {match[1]: match[2] for match in map(_ALIAS.match, lines) if match}
    parser = _Locations(aliases)
    places: list[CallChain] = [()] * len(lines)
    open_lines: list[int] = []
    for number, line in enumerate(lines):
        if _ALIAS.match(line):
            continue
        code, location = split_location(line.rstrip())
        place = parser.parse(location) if location else ()
        closes = code.lstrip().startswith("}")
        first = open_lines.pop() if closes and open_lines else number
        places[first] = place or places[first]
        if code.endswith("{"):
            open_lines.append(first if closes else number)
    return places


def split_location(line: str) -> tuple[str, str]:
    """A line without the location at its end, and that location's inside; empty when it has none."""
    if not line.endswith(")"):
        return line, ""
    start = line.rfind(" loc(")
    while start > 0 and line.count('"', 0, start) % 2:  # within a string
        start = line.rfind(" loc(", 0, start)
    inside = line[start + 5 : -1]
    if start < 0 or _depth(inside):
        return line, ""
    return line[:start].rstrip(), inside


def _depth(text: str) -> int:
    """Brackets that a text leaves open, or -1 when it closes one that it did not open."""
    depth = 0
    for token in _TOKEN.findall(text):
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return -1
    return depth


class _Locations:
    """Reads what stands between the brackets of `loc`.

    file:line:column | unknown | "name"(child) | callsite(callee at caller) | fused<…>[child, …] | #alias
    """

    def __init__(self, aliases: dict[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, CallChain] = {}

    def parse(self, text: str, nesting: int = 0) -> CallChain:
        if text not in self._known:
            self._known[text] = ()  # for aliases that lead round in a circle
            self._known[text] = _Reader(text, self).location(nesting)
        return self._known[text]

    def alias(self, name: str, nesting: int) -> CallChain:
        return self.parse(self._aliases[name], nesting) if name in self._aliases else ()


class _Reader:
    """One location; what it does not know is not a place."""

    def __init__(self, text: str, locations: _Locations) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)[::-1]
        self._locations = locations

    def location(self, nesting: int) -> CallChain:
        token = self._next()
        if nesting > 2 * MAX_CALLS:
            return ()
        if token.startswith("#loc"):
            return self._locations.alias(token, nesting + 1)
        if token.startswith('"'):
            return self._named(_unquoted(token), nesting)
        if token == "callsite":
            return self._call(nesting)
        if token == "fused":
            return self._fused(nesting)
        return ()

    def _named(self, name: str, nesting: int) -> CallChain:
        """A file with its line, or a name with a location."""
        if self._peek() == "(":
            return self._bracketed(nesting)
        if self._peek() != ":":
            return ()
        self._next()
        line = self._next()
        column = "0"
        if self._peek() == ":":
            self._next()
            column = self._next()
        return (SourcePlace(name, int(line), int(column)),) if line.isdecimal() and column.isdecimal() else ()

    def _call(self, nesting: int) -> CallChain:
        self._next()
        callee = self.location(nesting + 1)
        self._skip_to("at")
        return (callee + self.location(nesting + 1))[:MAX_CALLS]

    def _fused(self, nesting: int) -> CallChain:
        self._skip_to("[")
        while self._peek() and self._peek() != "]":
            if place := self.location(nesting + 1):
                return place
            self._skip_to(",")
        return ()

    def _bracketed(self, nesting: int) -> CallChain:
        self._next()
        place = self.location(nesting + 1)
        if self._peek() == ")":
            self._next()
        return place

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def _next(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def _skip_to(self, token: str) -> None:
        while self._tokens and self._next() != token:
            pass


def _unquoted(token: str) -> str:
    """A string as MLIR quotes it: bytes outside ASCII as two hexadecimal digits."""

    def byte(match: re.Match[bytes]) -> bytes:
        return bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1]

    return _ESCAPE.sub(byte, token[1:-1].encode()).decode(errors="replace")
