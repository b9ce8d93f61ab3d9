"""Operations of compiled programs: the names that JAX gave them, and lines of the user's code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bragg.grouping.hlo_names import SAME_CALLS, arguments_of

PROGRAM_KEY = "hlo_program"
"""Attributes of a module begin like this, one for each program of its name; the values are of `program_text`."""


class HloPlace(NamedTuple):
    """A line of a file, from 1."""

    file: str
    line: int


NOWHERE = HloPlace("", 0)
_NO_WORDS = re.compile(r"[\W_]")
_ELEMENTS = re.compile(r"\[\d+ \w+,? ")


class HloState(NamedTuple):
    """What an operation computes or copies though the program need not.

    Attributes:
        name: One of those of `hlo_names`; empty: nothing is known.
        place: Line of the program that asks for it; `NOWHERE` when unknown.
    """

    name: str
    place: HloPlace


NOT_JUDGED = HloState("", NOWHERE)


class HloOperation(NamedTuple):
    """An operation.

    Attributes:
        op_name: Path of names; see `hlo_names`.
        place: Line of the program that it comes from; `NOWHERE` when unknown.
        collective: What it does with other devices, as `analyze/ranks/operations` reads it; empty: nothing.
        state: What of it the program need not do.
    """

    op_name: str
    place: HloPlace
    collective: str = ""
    state: HloState = NOT_JUDGED


class HloPrograms:
    """Operations by module and name. A function that is compiled again has several programs of one name.

    Args:
        attributes: Of frames, by label.
    """

    def __init__(self, attributes: Mapping[str, Mapping[str, str]]) -> None:
        self._same = _same_arguments(attributes)
        self._programs = {
            module: [_operations(text) for key, text in values.items() if key.startswith(PROGRAM_KEY)]
            for module, values in attributes.items()
        }

    def find(self, module: str, op: str, op_name: str = "") -> HloOperation:
        """The facts that all programs agree on.

        Args:
            module: Name of the module.
            op: Name of the operation.
            op_name: What the range of the operation says: its path of names; of fused operations what their paths begin
                with; or nothing.
        """
        known = [program[op] for program in self._programs.get(module, ()) if op in program]
        found = [each for each in known if op_name in ("", each.op_name) or each.op_name.startswith(f"{op_name}/")]
        return HloOperation(
            _agreed((each.op_name for each in found), op_name),
            _agreed((each.place for each in found), NOWHERE),
            _agreed_collective([each.collective for each in found]),
            self._confirmed(module, _agreed((each.state for each in found), NOT_JUDGED)),
        )

    def _confirmed(self, module: str, state: HloState) -> HloState:
        """A state, if the arguments that it names are the same at each call."""
        return state if arguments_of(state.name) <= self._same.get(_words(module), frozenset()) else NOT_JUDGED


def _same_arguments(attributes: Mapping[str, Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """Arguments that are the same at each call, by function; of several of its name those of all."""
    found: dict[str, frozenset[str]] = {}
    for function, values in attributes.items():
        for key, value in values.items():
            if key.startswith(SAME_CALLS):
                same = arguments_of(value)
                found[_words(function)] = found.get(_words(function), same) & same
    return found


def _words(name: str) -> str:
    """What `jit(f)` and `jit_f` have in common."""
    return _NO_WORDS.sub("", name)


def _agreed(values: Iterable[Any], otherwise: Any) -> Any:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else otherwise


def _agreed_collective(told: list[str]) -> str:
    """What programs agree on: a function that is called with several shapes sums so many elements or others."""
    if all(told) and len(set(told)) > 1:
        told = [_ELEMENTS.sub("[", text) for text in told]
    return str(_agreed(told, ""))


def program_text(operations: Mapping[str, HloOperation]) -> str:
    """The operations of one program as text."""
    places = [place for each in operations.values() for place in (each.place, each.state.place)]
    files = list(dict.fromkeys(place.file for place in places))
    rows = {name: _row(operation, files) for name, operation in operations.items()}
    return json.dumps({"files": files, "ops": rows}, separators=(",", ":"))


def _row(operation: HloOperation, files: list[str]) -> list[str | int]:
    row: list[str | int] = [operation.op_name, files.index(operation.place.file), operation.place.line]
    if operation.state != NOT_JUDGED:
        name, (file, line) = operation.state
        return [*row, operation.collective, name, files.index(file), line]
    return [*row, operation.collective] if operation.collective else row


def _operations(text: str) -> dict[str, HloOperation]:
    """Parse the text of a program; a text that was cut off gives nothing."""
    try:
        read = json.loads(text)
        files = read["files"]
        return {
            name: HloOperation(op_name, HloPlace(files[file], line), str((rest or [""])[0]), _state(rest[1:], files))
            for name, (op_name, file, line, *rest) in read["ops"].items()
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}


def _state(row: list[Any], files: list[str]) -> HloState:
    """The state that the end of a row tells, if it does."""
    if not row:
        return NOT_JUDGED
    name, file, line = row
    return HloState(str(name), HloPlace(files[file], line))
