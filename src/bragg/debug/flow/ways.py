"""What the ways of a condition take of the names before it: the compiler wants one type, whichever way is taken."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType

from bragg.debug.flow.rewriting.contents import Contents

# Code and line of an `if`.
Site = tuple[CodeType, int]

_RETURNED = ""


def taken_sides(node: ast.IfExp, names: Container[str]) -> list[str]:
    """What each side of a conditional expression takes, as the text of an expression; empty: not both are known."""
    way = _Way(names, frozenset())
    sides = [way.text_of(side) for side in (node.body, node.orelse)]
    return sides if all(sides) else []


def taken_names(
    node: ast.If, names: Container[str], rest: Sequence[ast.stmt], contents: Mapping[ast.AST, Contents]
) -> Iterator[tuple[str, str, str]]:
    """What both ways of an `if` give one result by names.

    Args:
        node: The statement.
        names: Those that count.
        rest: Statements after it: programs that do not return before go there.
        contents: Of all statements.

    Yields:
        What the compiler says where their types differ, and what either way takes: the text of a name, or of a tuple
        of those that are added up.
    """
    first, second = _taken(node.body, names, contents), _taken(node.orelse, names, contents)
    if _RETURNED in first and not node.orelse:
        second.update((name, text) for name, text in _taken(rest, names, contents).items() if name == _RETURNED)
    for result in sorted(first.keys() & second.keys()):
        what = "Inconsistent return types" if result == _RETURNED else f"Mismatched type for {result}"
        yield what, first[result], second[result]


@dataclass(frozen=True)
class _Way:
    """One way.

    Attributes:
        names: Those from before it that count.
        stored: Those that it assigns.
        known: What it has assigned so far: the text of what that takes.
    """

    names: Container[str]
    stored: frozenset[str]
    known: dict[str, str] = field(default_factory=dict)

    def text_of(self, value: ast.expr | None) -> str:
        """What an expression takes: a name, or a tuple of those that are added up; empty: that is not known."""
        if isinstance(value, ast.Name):
            own = value.id if value.id in self.names and value.id not in self.stored else ""
            return self.known.get(value.id, own)
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add | ast.Sub):
            return ""
        sides = [text for text in map(self.text_of, (value.left, value.right)) if text]
        return f"({' '.join(f'{side},' if side[0] != '(' else side[1:-1] for side in sides)})" if sides else ""


def _taken(way: Sequence[ast.stmt], names: Container[str], contents: Mapping[ast.AST, Contents]) -> dict[str, str]:
    """Results of a way that come from names before it."""
    stored = [name for one in way for name in contents[one].stored]
    known = _Way(names, frozenset(stored))
    found = {}
    for statement in way:
        if isinstance(statement, ast.Return):
            result = _RETURNED
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            result = statement.targets[0].id
        else:
            continue
        text = known.text_of(statement.value)
        if text and stored.count(result) <= 1:
            found[result] = known.known[result] = text
    return found


def site_of_caller() -> Site:
    """Where the function that called this one was called."""
    frame = sys._getframe(2)
    return frame.f_code, frame.f_lineno


class TypesQuestion:
    """Asks the compiler at most once in a launch, and not where programs went all ways and found one type.

    Args:
        ask: Says whether it is known that all names have one type, and raises a `KernelFault` where one has two.
    """

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._answer: bool | None = None
        self._ways: dict[Site, bool | None] = {}
        self._types: dict[tuple[Site, str], str] = {}

    def is_known(self) -> bool:
        """All names have one type.

        Raises:
            KernelFault: One has two.
        """
        if self._answer is None:
            self._answer = self._ask()
        return self._answer

    def went(self, site: Site, way: bool | None) -> None:
        """Programs go one way, or both of them: None."""
        if self._ways.setdefault(site, way) is not way:
            self._ways[site] = None

    def gave(self, site: Site, name: str, kind: str) -> None:
        """A name without a value has one after a way, of some type.

        Raises:
            KernelFault: It has another type after the other way.
        """
        if self._types.setdefault((site, name), kind) != kind:
            self.is_known()

    def finish(self) -> None:
        """The launch is over: ask for the ways that nobody went.

        Raises:
            KernelFault: A name has another type there.
        """
        if any(way is not None for way in self._ways.values()):
            self.is_known()
