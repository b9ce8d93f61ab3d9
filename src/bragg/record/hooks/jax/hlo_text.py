"""Facts about operations in the text of an optimized HLO module."""

from __future__ import annotations

import re
from dataclasses import replace

from bragg.grouping.hlo_program import NOWHERE, HloOperation, HloPlace
from bragg.record.hooks.jax.hlo_collectives import CompiledFor, collective_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["operations_in"]

# "%fused_computation.5 (param_0.5: f32[4,32,64]) -> f32[4,32,64] {"
_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$")
# "  ROOT %mul.3 = f32[32,64]{1,0} multiply(%sin.2, %constant.47), metadata={op_name="jit(f)/mul" stack_frame_id=13}"
_INSTRUCTION = re.compile(r"  (?:ROOT )?%?([\w.-]+) = .*? ([a-z][\w-]*)\(")
_FUSED = re.compile(r"calls=%?([\w.-]+)")
_OP_NAME, _SOURCE_FILE = (re.compile(rf'\b{key}="((?:[^"\\]|\\.)*)"') for key in ("op_name", "source_file"))
_SOURCE_LINE, _STACK_FRAME = (re.compile(rf"\b{key}=(\d+)") for key in ("source_line", "stack_frame_id"))
# Tables before the first computation: "FileNames" and rows like `1 "train.py"` or `2 {file_name_id=1 line=13}`.
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_FIELD = re.compile(r"(\w+)=(\d+)")
_ESCAPED = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
# Of these nothing is executed.
_NO_WORK = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "partition-id"})


def operations_in(
    text: str, is_library: Callable[[str], bool], devices: CompiledFor | None = None
) -> dict[str, HloOperation]:
    """The operations that are executed, by name; those that are fused into others are parts of these.

    Args:
        text: The module, as XLA prints it: with tables of stack frames, or with files and lines (before JAX 0.8).
        is_library: Whether a file is none of the user's. The innermost line of the user's counts, if there is one.
        devices: That the program was compiled for; None: not known.
    """
    lines = text.splitlines()
    if devices is not None and (told := _PARTITIONS.search(lines[0] if lines else "")):
        devices = replace(devices, n_partitions=int(told[1]))
    places = _Places(lines, is_library)
    computations = dict(_computations(lines))
    fused: set[str] = set()
    for instructions in computations.values():
        fused.update(found[1] for _, code, line in instructions if code == "fusion" and (found := _FUSED.search(line)))
    operations = {}
    for computation, instructions in computations.items():
        if computation not in fused:
            for name, code, line in instructions:
                if code not in _NO_WORK:
                    operation = _operation(line, computations, places)
                    operations[name] = operation._replace(collective=_collective(code, line, computations, devices))
    return operations


def _computations(lines: list[str]) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Computations by name: of each instruction the name, what it does, and its line."""
    instructions: list[tuple[str, str, str]] = []
    for line in lines:
        if line.startswith("  "):
            found = _INSTRUCTION.match(line)
            if found:
                instructions.append((found[1], found[2], line))
        elif found := _COMPUTATION.match(line):
            instructions = []
            yield found[1], instructions


def _operation(line: str, computations: dict[str, list[tuple[str, str, str]]], places: _Places) -> HloOperation:
    """Its metadata; a missing entry comes from the last fused instruction that has it."""
    own = places.read(line)
    called = _FUSED.search(line)
    if called is None or (own.op_name and own.place != NOWHERE):
        return own
    inner = [places.read(each) for _, _, each in reversed(computations.get(called[1], []))]
    # Names without slashes are those of arguments.
    op_name = own.op_name or next((each.op_name for each in inner if "/" in each.op_name), "")
    return HloOperation(op_name, next((each.place for each in inner if each.place != NOWHERE), own.place))


def _collective(
    code: str, line: str, computations: dict[str, list[tuple[str, str, str]]], devices: CompiledFor | None
) -> str:
    """What an instruction does with other devices; one that starts or executes another tells what that one does."""
    called = _FUSED.search(line) if code in ("async-start", "fusion", "fusion-start") else None
    inner = computations.get(called[1], []) if called else [("", code, line)]
    return next((told for _, what, text in inner if (told := collective_of(what, text, devices))), "")


class _Places:
    """The lines that metadata stand for."""

    def __init__(self, lines: list[str], is_library: Callable[[str], bool]) -> None:
        self._is_library = is_library
        tables = _tables(lines)
        self._files = {row: _unescaped(text.strip('"')) for row, text in tables["FileNames"].items()}
        self._locations = _fields_of(tables["FileLocations"])
        self._frames = _fields_of(tables["StackFrames"])
        # XLA prints parents as one more than their row, so that the outermost frame has itself.
        self._parent_offset = self._frames.get(1, {}).get("parent_frame_id", 0)
        self._place_of_frame: dict[int, HloPlace] = {}

    def read(self, line: str) -> HloOperation:
        at = line.find(", metadata={")
        if at < 0:
            return HloOperation("", NOWHERE)
        name, file = _text(_OP_NAME.search(line, at)), _text(_SOURCE_FILE.search(line, at))
        if file:
            return HloOperation(name, HloPlace(file, _number(_SOURCE_LINE.search(line, at))))
        return HloOperation(name, self._of_frame(_number(_STACK_FRAME.search(line, at))))

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
            location = self._locations.get(self._frames[frame].get("file_location_id", 0), {})
            file = self._files.get(location.get("file_name_id", 0), "")
            if file and "line" in location:
                yield HloPlace(file, location["line"])
            frame = self._frames[frame].get("parent_frame_id", 0) - self._parent_offset


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


def _fields_of(rows: dict[int, str]) -> dict[int, dict[str, int]]:
    return {row: {key: int(value) for key, value in _FIELD.findall(text)} for row, text in rows.items()}


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
