"""Source places of the lines of PTX, from its `.file` and `.loc` directives."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from bragg.code.source_place import MAX_CALLS, CallChain, SourcePlace

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?(?P<rest>[^/]*)(?://(?P<comment>.*))?")
_INLINED_AT = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_CALL_SITE = re.compile(r"@\[\s*(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?(?=\s|\])")
_FUNCTION = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)?\.(?:entry|func)\b")
_BEGIN_ASSEMBLY, _END_ASSEMBLY = "// begin inline asm", "// end inline asm"

_Key = tuple[str, str, str]


def places_of_ptx(text: str) -> list[CallChain]:
    """Where each line comes from, one chain a line; lines that are not instructions have none."""
    lines = text.splitlines()
    files = _files_of(lines)
    reader = _Reader(files)
    return [reader.place(line) for line in lines]


def _files_of(lines: list[str]) -> dict[str, str]:
    """File names by number, whole paths."""
    files = {}
    for match in filter(None, map(_FILE.match, lines)):
        number, first, second = match.groups()
        files[number] = f"{first}/{second}" if second is not None else first
    return files


class _Reader:
    """Goes through the lines and remembers the place that the last `.loc` named."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self._by_name = {PurePosixPath(path).name: path for path in files.values()}
        self._chains: dict[_Key, CallChain] = {}
        self._current: CallChain = ()
        self._in_assembly = False

    def place(self, line: str) -> CallChain:
        stripped = line.strip()
        if stripped.startswith(_BEGIN_ASSEMBLY):
            self._in_assembly = True
        elif stripped.startswith(_END_ASSEMBLY):
            self._in_assembly = False
        elif match := _LOC.match(line):
            self._locate(match)
        elif _FUNCTION.match(line):
            self._current = ()
        elif stripped and stripped[0] not in "/.${}()":
            return self._current
        return ()

    def _locate(self, match: re.Match[str]) -> None:
        """Take the place of a `.loc`.

        LLVM 20 counts the lines of inline assembly on from the line of the call: only the first `.loc` counts there,
        which is the same as the one before.
        """
        if self._in_assembly:
            return
        file, line, column = match[1], match[2], match[3] or "0"
        own = SourcePlace(self._files.get(file, ""), int(line), int(column))
        if not own.file or not own.line:
            self._current = ()
            return
        callers = self._callers(match)
        self._current = (own, *callers)[:MAX_CALLS]
        self._chains[file, line, column] = self._current

    def _callers(self, match: re.Match[str]) -> CallChain:
        if called := _INLINED_AT.search(match["rest"]):
            file, line, column = called.groups()
            # The place of the call is that of a `.loc` before, which says where it was inlined itself.
            alone = (SourcePlace(self._files.get(file, ""), int(line), int(column)),)
            return self._chains.get((file, line, column), alone)
        # Before LLVM 20 only the comment says it, with the last part of the path.
        return tuple(
            SourcePlace(self._by_name.get(site["file"], site["file"]), int(site["line"]), int(site["column"] or 0))
            for site in _CALL_SITE.finditer(match["comment"] or "")
        )
