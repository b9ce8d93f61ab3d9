"""The values of one computation of an HLO module, with all that is fused in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction


LONG = frozenset(
    {"while", "dot", "sort", "fft", "convolution", "custom-call", "reduce", "reduce-window", "scatter", "gather"}
)
"""What takes long, if it is large."""
_LEAST_ELEMENTS = 1 << 12  # of a value or an operand

_HANDED_ON = frozenset({"bitcast", "copy", "copy-start", "copy-done", "opt-barrier"})
_INLINED = frozenset({"fusion", "call"})
_RUNS_OTHERS = frozenset({"while", "reduce", "reduce-window"})
_SAME_ELEMENTS = frozenset({"reshape", "transpose", "convert", "bitcast-convert"})
_SOURCES = frozenset({"constant", "parameter", "iota"})
_PART = re.compile(r"%([\w.-]+)#(\d+)")  # JAX 0.11, of a tuple
_LAYOUT = re.compile(r"\]\{([\d,]+)")
_PRIMITIVE = re.compile(r'op_name="(?:[^"]*/)?([^"/]*)"')
# What is not the same in copies of an operation.
_OWN = re.compile(
    r", (?:metadata|backend_config|frontend_attributes)=\{.*|"
    r"\b(?:calls|to_apply|body|condition|branch_computations|channel_id)=\{?%?[\w.%-]+(?:, %[\w.-]+)*\}?"
)


@dataclass(eq=False)
class Value:
    """What an instruction computes.

    Attributes:
        made: The instruction, which may be a part of a fused one.
        executed: The instruction that is executed, itself or what it is fused into.
        operands: What it is computed from.
        sources: Which of what the computation is given it depends on, a bit for each.
        element: Of the tuple that it is; -1: all of it.
        codes: Of a loop or a reduction, what it does.
        before: Of what a loop is given and no turn changes: what it is before the loop; None: it may change.
    """

    made: Instruction
    executed: Instruction
    operands: list[Value]
    sources: int
    element: int = -1
    codes: str = ""
    before: Value | None = None
    _elements: dict[int, Value] = field(default_factory=dict)

    @cached_property
    def kind(self) -> str:
        """The same for all that compute the same from the same operands, in the same type and shape."""
        line, code = self.made.line, self.made.code
        begin = line.find(" = ")
        end = self.made.begin - len(code) - 2
        given = line[end:] if code in _SOURCES else line[line.find(")", end) :]
        primitive = _PRIMITIVE.search(line)
        parts = (str(self.element), line[begin:end], code, _OWN.sub("", given), self.codes)
        return "|".join((*parts, primitive[1] if primitive else ""))

    @cached_property
    def shape(self) -> str:
        """Type and sizes, as `f32[8,64]`; empty: it is a tuple."""
        return next(iter(self.made.shapes[self._arrays]), "")

    @cached_property
    def sizes(self) -> list[int]:
        """Of its dimensions; empty: it is a number or a tuple."""
        return next(iter(self.made.sizes[self._arrays]), [])

    @property
    def _arrays(self) -> slice:
        """Which of those of the instruction it is; none: it is a tuple."""
        at = 0 if len(self.made.shapes) == 1 else self.element
        return slice(at, at + 1)

    @cached_property
    def size(self) -> int:
        """How many elements it has; of a tuple its first array."""
        return prod(self.sizes) if self.element >= 0 else self.made.size

    @cached_property
    def is_row_major(self) -> bool:
        """Whether elements that are neighbours in the last dimension are so in memory; of a tuple all its arrays."""
        line = self.made.line
        layouts = _LAYOUT.findall(line, line.find(" = "), self.made.begin)
        return all(axes == sorted(axes, reverse=True) for axes in ([*map(int, each.split(","))] for each in layouts))

    @property
    def is_large(self) -> bool:
        """Whether it has many elements, or is made from many."""
        return max((each.made.size for each in (self, *self.operands)), default=0) >= _LEAST_ELEMENTS

    @property
    def plain(self) -> Value:
        """What has its elements, in another order, shape or type."""
        value = self
        while value.made.code in _SAME_ELEMENTS and value.operands:
            value = value.operands[0]
        return value

    @property
    def known(self) -> Value:
        """The same, which may be computed before the loop that is given it."""
        value = self.plain
        return value if value.before is None else value.before.known

    def is_number(self, number: str) -> bool:
        """Whether all its elements are this constant."""
        value = self
        while value.made.code in ("broadcast", *_SAME_ELEMENTS) and value.operands:
            value = value.operands[0]
        return value.made.code == "constant" and f"constant({number})" in value.made.line

    def part(self, element: int) -> Value:
        """One element of the tuple that it is."""
        if self.made.code == "tuple" and self.element < 0 and element < len(self.operands):
            return self.operands[element]
        if element not in self._elements:
            sources = 1 << element if self.made.code == "parameter" else self.sources
            self._elements[element] = Value(self.made, self.executed, self.operands, sources, element, self.codes)
        return self._elements[element]


class HloGraph:
    """Values of a computation.

    Attributes:
        computation: Its name.
        is_turn: Whether it is the body of a loop: it is given one tuple, and returns the next one.
        values: In the order in which they are computed.

    Args:
        module: The module.
        computation: One that is executed.
    """

    def __init__(self, module: HloModule, computation: str) -> None:
        self._module = module
        self.computation = computation
        self.is_turn = computation != module.entry
        self.values: list[Value] = []
        self._root = self._add(computation, None, None)

    @cached_property
    def results(self) -> list[Value]:
        """What the computation returns, by element of the tuple."""
        if self._root is None:
            return []
        return self._root.operands if self._root.made.code == "tuple" else [self._root]

    @cached_property
    def given(self) -> dict[int, Value]:
        """What it is given, by bit in `sources`."""
        parameters = [each for each in self.values if each.made.code == "parameter" and each.made.position >= 0]
        if not self.is_turn:
            return {each.made.position: each for each in parameters}
        return {at: each for whole in parameters for at, each in whole._elements.items()}

    def begin_after(self, outer: HloGraph, loop: Instruction) -> None:
        """Know what the turns of a loop are given, and never change, by the computation that runs the loop."""
        whole = next((each for each in outer.values if each.made is loop and each.operands), None)
        for at, given in self.given.items() if whole else ():
            if whole and self.results[at : at + 1] == [given]:
                given.before = whole.operands[0].part(at)

    def way_to(self, value: Value, at: int) -> list[Instruction]:
        """What hands on an operand, which has no value of its own, from the one that is named to what computes it."""
        name, element = value.made.operands[at], 0
        way: list[Instruction] = []
        while each := self._module.named.get(name):
            way.append(each)
            made = self._module.root(each.called) if each.code in _INLINED else each
            if made and made.code == "tuple":
                name, element = "".join(made.operands[element : element + 1]), 0
            elif made and made is not each:
                name = made.name
            elif each.code in _HANDED_ON or each.code == "get-tuple-element":
                name, element = each.operand, max(each.position, element)
            elif each.code == "parameter" and each.name in self._module.passed:
                name = self._module.passed[each.name]
            else:
                break
        return way

    def users(self, value: Value) -> list[Value]:
        """What a value, or a part of it, is an operand of."""
        return self._users.get((value.made, value.executed), [])

    @cached_property
    def _users(self) -> dict[tuple[Instruction, Instruction], list[Value]]:
        users: dict[tuple[Instruction, Instruction], list[Value]] = {}
        for value in self.values:
            for made in dict.fromkeys((each.made, each.executed) for each in value.operands):
                users.setdefault(made, []).append(value)
        return users

    def _add(self, computation: str, given: list[Value] | None, executed: Instruction | None) -> Value | None:
        known: dict[str, Value] = {}
        value = None
        for each in self._module.computations.get(computation, ()):
            value = known[each.name] = self._value(each, known, given, executed or each)
        root = self._module.root(computation)
        return known.get(root.name) if root else value

    def _value(
        self, each: Instruction, known: dict[str, Value], given: list[Value] | None, executed: Instruction
    ) -> Value:
        code = each.code
        if code == "parameter" and given is not None and 0 <= each.position < len(given):
            return given[each.position]
        operands = [] if code in _SOURCES else _operands(each, known)
        if code in _HANDED_ON and operands:
            return operands[0]
        if code == "get-tuple-element" and operands and each.position >= 0:
            return operands[0].part(each.position)
        inlined = self._add(each.called, operands, executed) if code in _INLINED else None
        if inlined is not None:
            return inlined
        sources = 1 << max(each.position, 0) if code == "parameter" else 0
        for operand in operands:
            sources |= operand.sources
        inside = self._module.computations.get(each.called, ()) if code in _RUNS_OTHERS else ()
        value = Value(each, executed, operands, sources, codes="".join(row.code for row in inside))
        self.values.append(value)
        return value


def _operands(each: Instruction, known: dict[str, Value]) -> list[Value]:
    parts = dict(_PART.findall(each.line)) if "#" in each.line else {}
    found = ((known.get(name), parts.get(name)) for name in each.operands)
    return [value.part(int(part)) if part else value for value, part in found if value is not None]
