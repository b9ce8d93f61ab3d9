"""Lines of the program that operations of an HLO module come from."""

from __future__ import annotations

import re

from bragg.grouping.hlo_program import NOWHERE, HloOperation, HloPlace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_OP_NAME, _SOURCE_FILE = (re.compile(rf'\b{key}="((?:[^"\\]|\\.)*)"') for key in ("op_name", "source_file"))
_SOURCE_LINE, _STACK_FRAME = (re.compile(rf"\b{key}=(\d+)") for key in ("source_line", "stack_frame_id"))
# Tables before the first computation: "FileNames" and rows like `1 "train.py"` or `2 {file_name_id=1 line=13}`.
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_FIELD = re.compile(r"(\w+)=(\d+)")
_ESCAPED = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class Places:
    """The lines that metadata stand for.

    Args:
        lines: Of the text.
        is_library: Whether a file is none of the user's.
    """

    def __init__(self, lines: list[str], is_library: Callable[[str], bool]) -> None:
        self._is_library = is_library
        tables = _tables(lines)
        self._files = {row: _unescaped(text.strip('"')) for row, text in tables["FileNames"].items()}
        self._locations = tables["FileLocations"]
        self._frames = tables["StackFrames"]
        # XLA prints parents as one more than their row, so that the outermost frame has itself.
        self._parent_offset = _fields_of(self._frames.get(1, "")).get("parent_frame_id", 0)
        self._place_of_frame: dict[int, HloPlace] = {}

    def read(self, line: str) -> HloOperation:
        """What the metadata of an instruction say."""
        at = line.find(", metadata={")
        if at < 0:
            return HloOperation("", NOWHERE)
        name = _text(_OP_NAME.search(line, at))
        file = _text(_SOURCE_FILE.search(line, at)) if "source_file=" in line else ""
        if file:
            return HloOperation(name, HloPlace(file, _number(_SOURCE_LINE.search(line, at))))
        return HloOperation(name, self._of_frame(_number(_STACK_FRAME.search(line, at))))

    def nearest(self, lines: list[str]) -> HloPlace:
        """The place of the first of some instructions that has one."""
        return next((place for line in lines if (place := self.read(line).place) != NOWHERE), NOWHERE)

    def stack(self, line: str) -> list[HloPlace]:
        """The lines that called the code of an instruction, its own first; before JAX 0.8 they are not known."""
        return list(self._stack(_number(_STACK_FRAME.search(line))))

    def _of_frame(self, frame: int) -> HloPlace:
        if frame not in self._place_of_frame:
            stack = list(self._stack(frame))
            own = [place for place in stack if not self._is_library(place.file)]
            self._place_of_frame[frame] = (own or stack or [NOWHERE])[0]
        return self._place_of_frame[frame]

    def _stack(self, frame: int) -> Iterator[HloPlace]:
        """Places of a frame and its callers, innermost first."""
        seen: set[int] = set()
        while frame in self._frames and frame not in seen:
            seen.add(frame)
            fields = _fields_of(self._frames[frame])
            location = _fields_of(self._locations.get(fields.get("file_location_id", 0), ""))
            file = self._files.get(location.get("file_name_id", 0), "")
            if file and "line" in location:
                yield HloPlace(file, location["line"])
            frame = fields.get("parent_frame_id", 0) - self._parent_offset


def _tables(lines: list[str]) -> dict[str, dict[int, str]]:
    """The tables of stack frames: rows by number, which begin at 1."""
    tables: dict[str, dict[int, str]] = {name: {} for name in _TABLES}
    rows: dict[int, str] = {}
    for line in lines:
        number, _, text = line.partition(" ")
        if line in tables:
            rows = tables[line]
        elif number.isdecimal():
            rows[int(number)] = text
        elif line.startswith(("%", "ENTRY")):
            break
    return tables


def _fields_of(row: str) -> dict[str, int]:
    return {key: int(value) for key, value in _FIELD.findall(row)}


def _text(found: re.Match[str] | None) -> str:
    return _unescaped(found[1]) if found else ""


def _unescaped(text: str) -> str:
    """Text that XLA prints in quotation marks: bytes that are not ASCII are three octal digits."""
    if "\\" not in text:
        return text
    plain = _ESCAPED.sub(
        lambda found: bytes([int(found[1], 8) & 0xFF]) if found[1] else _CONTROL.get(found[2], found[2]), text.encode()
    )
    return plain.decode(errors="replace")


def _number(found: re.Match[str] | None) -> int:
    return int(found[1]) if found else 0
