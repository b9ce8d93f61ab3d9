"""The text of inline assembly, taken apart: statements of PTX with their guards and operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bragg.debug.faults import KernelFault, Unsupported

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GUARD = re.compile(r"@(!?)([\w$%]+)\s+(.*)", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_LABEL = re.compile(r"^[\w$%]+\s*:")


@dataclass(frozen=True)
class Statement:
    """One instruction.

    Attributes:
        name: Opcode with its modifiers: `add.rn.f32`.
        operands: The destination first, as written: `$0`, `tmp`, `0x7fff`, `{a, b}`, `p|q`, `[addr+4]`.
        guard: Predicate register that decides whether it is executed; empty: always.
        is_negated: It is executed where the predicate does not hold.
    """

    name: str
    operands: tuple[str, ...]
    guard: str = ""
    is_negated: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """Opcode and modifiers."""
        return tuple(self.name.split("."))


@lru_cache(maxsize=256)
def statements(text: str) -> tuple[Statement, ...]:
    """The instructions of a text; declarations of registers are left out, as registers come to be when written.

    Raises:
        Unsupported: It jumps, calls, or declares something else than registers.
    """
    return tuple(statement for piece in _pieces(_COMMENT.sub(" ", text)) if (statement := _statement(piece)))


def _pieces(text: str) -> Iterator[str]:
    """Statements as written, without the braces of blocks: those of vectors stand inside of a statement."""
    piece = ""
    for character in text:
        is_closing = character == "}" and piece.count("{") == piece.count("}")
        is_block = is_closing or (character == "{" and not piece.strip())
        if is_block or character == ";":
            if piece.strip():
                yield piece.strip()
            piece = ""
        else:
            piece += character
    if piece.strip():
        yield piece.strip()


def _statement(piece: str) -> Statement | None:
    if _REGISTERS.match(piece) or piece.startswith(".pragma"):
        return None
    if _LABEL.match(piece) or piece.startswith("."):
        raise Unsupported(f"inline assembly with {piece.split()[0]!r} is not supported", hint="Write it in Triton")
    guard = _GUARD.match(piece)
    register, negated = (guard[2], bool(guard[1])) if guard else ("", False)
    words = (guard[3] if guard else piece).split(None, 1)
    if words[0].split(".")[0] in ("bra", "call", "ret", "exit", "trap", "brx"):
        raise Unsupported(f"{words[0]} in inline assembly is not supported", hint="Write the control flow in Triton")
    return Statement(words[0], tuple(_operands(words[1] if len(words) > 1 else "")), register, negated)


def _operands(text: str) -> Iterator[str]:
    depth, operand = 0, ""
    for character in text:
        depth += (character in "{[") - (character in "}]")
        if character == "," and not depth:
            yield operand.strip()
            operand = ""
        else:
            operand += character
    if operand.strip():
        yield operand.strip()


@dataclass(frozen=True)
class Constraints:
    """What the constraint string says.

    Attributes:
        outputs: How many results there are.
        inputs: For each operand, the number of the output whose register it shares; None: it has its own.
    """

    outputs: int
    inputs: tuple[int | None, ...]


@lru_cache(maxsize=256)
def constraints(text: str) -> Constraints:
    """The operands that a constraint string in LLVM's format declares.

    Raises:
        KernelFault: An operand is in no register.
    """
    outputs = 0
    inputs: list[int | None] = []
    for one in (part.strip() for part in text.split(",")):
        if one.startswith(("=", "+")):
            outputs += 1
            inputs += [outputs - 1] if one.startswith("+") else []
        elif one.isdigit():
            inputs.append(int(one))
        elif one in ("r", "f", "h", "l", "d", "c", "b", "q", "n"):
            inputs.append(None)
        elif one and not one.startswith("~"):
            raise KernelFault(f"the constraint {one!r} of inline assembly is unknown", hint="Use r, f, h, l or d")
    return Constraints(outputs, tuple(inputs))
