"""The text of an optimized HLO module as computations and instructions, and which instruction uses what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


BATCHED = re.compile(r'\blhs_batch_dim(?:s|ensions)"?[=:][{\[]([\d,"]*)[}\]]')
"""In the line of a product: the numbers of dimensions of its left factor whose matrices are multiplied one by one."""
DIMENSIONS = re.compile(r"\bdimensions=\{([\d,]*)\}")
"""In the line of an instruction: the numbers of those of its operand that it keeps, drops, or puts elsewhere."""

# "%fused_computation.5 (param_0.5: f32[4,32,64]) -> f32[4,32,64] {"
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\{$")
# "  ROOT %mul.3 = f32[32,64]{1,0} multiply(%sin.2, %constant.47), metadata={op_name="jit(f)/mul" stack_frame_id=13}"
_INSTRUCTION = re.compile(r"  (?:ROOT )?%?([\w.-]+) = .*? ([a-z][\w-]*)\(")
_CALLED = re.compile(r"\b(?:calls|body|to_apply)=%?([\w.-]+)")
_BRACKET = re.compile(r"[()]")
_NAME = re.compile(r"%([\w.-]+)")
_SHAPE = re.compile(r"\b[a-z]\w*\[[\d,]*\]")
_POSITION = re.compile(r"\bindex=(\d+)|\bparameter\((\d+)\)")
_PRODUCTS = frozenset({"dot", "custom-call"})  # those of libraries are calls


@dataclass(eq=False)
class Instruction:
    """An instruction.

    Attributes:
        name: In its module.
        code: What it does.
        line: Its text.
        begin: Where the names of what it uses begin in it.
    """

    name: str
    code: str
    line: str
    begin: int

    @cached_property
    def operands(self) -> list[str]:
        """Names of what it uses, in order."""
        end = self.line.find(")", self.begin)
        # JAX before 0.5 prints types of operands, which may be tuples.
        is_plain = self.line.find("(", self.begin, end) < 0
        return _NAME.findall(self.line, self.begin, end if is_plain else _closing(self.line, self.begin))

    @cached_property
    def operand(self) -> str:
        """The first of them; empty: it has none."""
        return next(iter(self.operands), "")

    @cached_property
    def called(self) -> str:
        """The computation that it runs: what is fused, or the body of a loop; empty: none."""
        found = _CALLED.search(self.line)
        return found[1] if found else ""

    @cached_property
    def shapes(self) -> list[str]:
        """Type and sizes, as `f32[8,64]`; of a tuple those of each array."""
        return _SHAPE.findall(self.line, self.line.find(" = "), self.begin)

    @cached_property
    def sizes(self) -> list[list[int]]:
        """Of dimensions, by array."""
        return [[int(size) for size in shape[shape.index("[") + 1 : -1].split(",") if size] for shape in self.shapes]

    @property
    def type(self) -> str:
        """Type of its elements, as `f32`; of a tuple that of its first array."""
        return self.shapes[0].partition("[")[0] if self.shapes else ""

    @cached_property
    def size(self) -> int:
        """How many elements it has; of a tuple its first array."""
        return prod(self.sizes[0]) if self.sizes else 0

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices."""
        return self.code in _PRODUCTS and "lhs_contracting_dim" in self.line

    @cached_property
    def position(self) -> int:
        """Which element of a tuple it takes, or which parameter it is; -1: neither."""
        found = _POSITION.search(self.line)
        return int(found[1] or found[2]) if found else -1


class HloModule:
    """Instructions of a module by computation.

    Args:
        lines: Of its text.
    """

    def __init__(self, lines: list[str]) -> None:
        self.header = lines[0] if lines else ""
        self.entry = ""
        self.computations: dict[str, list[Instruction]] = {}
        self._parameters: dict[str, dict[int, Instruction]] = {}
        instructions: list[Instruction] = []
        for line in lines:
            if line.startswith("  "):
                if found := _INSTRUCTION.match(line):
                    instructions.append(Instruction(found[1], found[2], line, found.end()))
            elif found := _COMPUTATION.match(line):
                instructions = self.computations[found[2]] = []
                self.entry = found[2] if found[1] else self.entry

    @cached_property
    def named(self) -> dict[str, Instruction]:
        """All instructions by name."""
        return {each.name: each for each in self._all()}

    @cached_property
    def passed(self) -> dict[str, str]:
        """Operands by the parameters that have them in what is fused, or called."""
        callers = [each for each in self._all() if each.code in ("fusion", "call")]
        pairs = ((self.parameter(each.called, at), name) for each in callers for at, name in enumerate(each.operands))
        return {parameter.name: name for parameter, name in pairs if parameter}

    @cached_property
    def fused(self) -> set[str]:
        """Computations whose instructions are parts of others."""
        return {each.called for each in self._all() if each.code == "fusion"}

    @cached_property
    def callers(self) -> dict[str, tuple[str, Instruction]]:
        """By computation that a loop or a call runs: where that is, and the instruction."""
        rows = ((name, each) for name, rows in self.computations.items() for each in rows)
        return {each.called: (name, each) for name, each in rows if each.code in ("while", "call") and each.called}

    def executed(self) -> Iterator[tuple[str, list[Instruction]]]:
        """Computations that are not parts of an instruction, by name."""
        return ((name, rows) for name, rows in self.computations.items() if name not in self.fused)

    def run_by(self, executed: Iterable[Instruction]) -> list[str]:
        """Names of instructions, and of all that those of them run that are loops or calls."""
        found, waiting = [], list(executed)
        while waiting:
            each = waiting.pop()
            found.append(each.name)
            waiting += self.computations.get(each.called, ()) if each.code in ("while", "call") else ()
        return found

    def root(self, computation: str) -> Instruction | None:
        """What a computation returns; None: it is not known."""
        rows = self.computations.get(computation, [])
        return next((each for each in reversed(rows) if each.line.startswith("  ROOT ")), None)

    def parameter(self, computation: str, position: int) -> Instruction | None:
        """One of what a computation takes; None: it is not known."""
        if computation not in self._parameters:
            rows = self.computations.get(computation, ())
            self._parameters[computation] = {each.position: each for each in rows if each.code == "parameter"}
        return self._parameters[computation].get(position)

    def _all(self) -> Iterator[Instruction]:
        return (each for rows in self.computations.values() for each in rows)


def _closing(line: str, begin: int) -> int:
    """Where the bracket ends that is open here."""
    depth = 1
    for bracket in _BRACKET.finditer(line, begin):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.start()
    return len(line)
