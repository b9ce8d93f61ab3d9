"""Loops of which a mask drops whole turns, although each program takes all of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bragg.code.compiled.operations import Module, Operation, place_of_chain, tile_of
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.code.compiled.values import UNKNOWN, Value
from bragg.model.kernels.compiled import MaskedLoop

_COMPARED = re.compile(r"arith\.cmpi (?:[su](?P<order>[lg])[te]|(?P<equal>eq)),")
# In place of what a mask drops: 0, -inf of 32 and 16 bits, or -1e3 and less.
_LEAST = re.compile(r"arith\.constant (?:dense<)?(?:0xF[CF]\w*|-\d\.\d+e\+(?:0[3-9]|[1-9]\d))>? :")
_ZERO = re.compile(r"arith\.constant (?:dense<)?(?:0|0\.0+e\+00|false)>? :")
_WRITES = ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_store")
_START, _END, _STEP = 1, 2, 3  # among the operands of scf.for, behind its counter
# What a comparison limits where the turn is less, greater, or the same.
_LIMITS = {1: "end", -1: "start", 0: "turn"}


@dataclass(frozen=True)
class _Kept:
    """What a comparison keeps.

    Attributes:
        at: `start` or `end` of a loop, which the comparison could set; `turn`: it keeps single turns.
        is_by_data: Whether memory says which.
        width: Of a window, how many elements along the loop all rows of a program's tile reach; None: not known.
    """

    at: str
    is_by_data: bool
    width: int | None = None


def masked_loops(module: Module, values: Mapping[str, Value], flow: TileDataflow) -> Iterator[MaskedLoop]:
    """Loops that a comparison of the turn with the program, or with what it has loaded, could shorten.

    Args:
        module: Of TTIR.
        values: Its values.
        flow: Where they come from.
    """
    for row, loop in enumerate(module.operations):
        if loop.name == "scf.for":
            found = _Masks(module, values, flow, row).found()
            if found:
                yield found


class _Masks:
    """The masks in one loop."""

    def __init__(self, module: Module, values: Mapping[str, Value], flow: TileDataflow, row: int) -> None:
        self._module, self._values, self._flow, self._row = module, values, flow, row
        self._loop = module.operations[row]
        self._inside = [each for each in module.operations if each.loop == row and not each.branches]

    def found(self) -> MaskedLoop | None:
        known = {
            name: self._flow.uses_program([self._loop.operands[at]]) for name, at in (("start", _START), ("end", _END))
        }
        masked: dict[str, _Kept] = {}
        for operation in self._inside:
            for kept in self._kept_by(operation):
                if not known.get(kept.at, known["start"] or known["end"]):
                    masked.update(dict.fromkeys(operation.results or operation.operands[:1], kept))
        if not masked or not self._drops_all(masked):
            return None
        kept = next(iter(masked.values()))
        multiplies = any(each.name == "tt.dot" for each in self._inside)
        if not multiplies and self._loads_only_kept(masked):
            return None
        return MaskedLoop(
            place_of_chain(self._loop.chain),
            multiplies,
            kept.at,
            kept.is_by_data,
            self._flow.turns(self._loop),
            self._flow.mean_turns(self._loop),
            self._turns_within(kept.width),
        )

    def _turns_within(self, width: int | None) -> int | None:
        """Turns that have a part of a window, wherever it begins."""
        step = self._flow.number(self._loop.operands[_STEP])
        return None if width is None or not step else -(-width // step) + 1

    def _drops_all(self, masked: Mapping[str, _Kept]) -> bool:
        """Whether a turn that is masked leaves nothing behind: of what it loads, all that it hands on is masked."""
        loads = [each for each in self._inside if each.name == "tt.load"]
        loaded = self._flow.reached(self._row, {name for each in loads for name in each.results})
        dropped = self._flow.reached(self._row, masked)
        handed_on = {name for each in self._inside if each.name == "scf.yield" for name in each.operands}
        writes = [each for each in self._inside if each.name in _WRITES]
        return bool(handed_on & dropped) and handed_on & loaded <= dropped and not writes

    def _loads_only_kept(self, masked: Mapping[str, _Kept]) -> bool:
        """Whether the mask is that of all loads of tiles, or without such of numbers.

        On an H100, turns without loads took no time that shows.
        """
        loads = [each for each in self._inside if each.name == "tt.load"]
        tiles = [each for each in loads if tile_of(each.text)]
        return all(masked.keys() & {*each.results} for each in tiles or loads)

    def _kept_by(self, operation: Operation) -> Iterator[_Kept]:
        """What the mask of a selection or a load keeps."""
        if operation.name == "tt.load" and len(operation.operands) > 1:
            yield from self._kept_where(operation.operands[1], "arith.andi", is_kept=True)
        if operation.name == "scf.if" and operation.results and self._is_left_alone(operation):
            yield from self._kept_where(operation.operands[0], "arith.andi", is_kept=True)
        if operation.name != "arith.select":
            return
        condition, if_true, if_false = operation.operands[:3]
        for pattern in (_LEAST, _ZERO):
            if self._is_constant(if_false, pattern):
                yield from self._kept_where(condition, "arith.andi", is_kept=True)
                return
            if self._is_constant(if_true, pattern):
                yield from self._kept_where(condition, "arith.ori", is_kept=False)
                return

    def _is_left_alone(self, branch: Operation) -> bool:
        """Whether what a loop carries stays as it is where a condition does not hold."""
        following = self._module.operations[self._module.operations.index(branch) + 1 :]
        ended = [at for at, each in enumerate(following) if each in self._inside]
        inside = [each for each in following[: ended[0]] if each.loop == self._row] if ended else []
        ends = [each for each in inside if each.name == "scf.yield" and each.branches == branch.branches + 1]
        return len(ends) > 1 and {*ends[-1].operands} <= self._loop.block.keys()

    def _kept_where(self, mask: str, join: str, *, is_kept: bool) -> Iterator[_Kept]:
        for part in self._flow.parts_of(mask, (join, "tt.splat")):
            compared = _COMPARED.match(part.text.partition(" = ")[2])
            if compared and (compared["order"] or is_kept):
                order = {"l": 1, "g": -1}.get(compared["order"] or "", 0)
                yield from self._limits(part.operands, order if is_kept else -order)

    def _limits(self, sides: tuple[str, ...], order: int) -> Iterator[_Kept]:
        """What a comparison limits.

        Args:
            sides: What is compared.
            order: Whether the first is kept where it is less (1), greater (-1) or the same (0).
        """
        for turning, other, sign in ((sides[0], sides[1], order), (sides[1], sides[0], -order)):
            if self._is_of_turn(turning, is_index=order != 0) and self._is_of_program(other):
                is_by_data = self._flow.is_loaded(other)
                if not self._value(turning).is_per_program or (order and is_by_data):
                    yield _Kept(_LIMITS[sign], is_by_data)
            elif order and not self._value(other).turns and not self._value(other).is_per_program:
                yield from self._limits_of_distance(turning, sign, self._flow.number(other))

    def _limits_of_distance(self, name: str, order: int, most: int | None) -> Iterator[_Kept]:
        """Of a distance between program and turn that is kept where it is less (1) or greater (-1) than a number."""
        distance = self._flow.made_by(name)
        is_both_ways = distance is not None and distance.name == "math.absi"
        if distance is not None and is_both_ways:
            distance = self._flow.made_by(distance.operands[0])
        if distance is None or distance.name != "arith.subi":
            return
        # Tiles along two dimensions: in one, the distance is the place of a neighbour, as in convolutions.
        strides = [stride for side in distance.operands for stride in self._value(side).strides]
        if sum(stride != (0, ()) for stride in strides) != len(distance.operands):
            return
        first, second = distance.operands
        for turning, other, sign in ((first, second, order), (second, first, -order)):
            if self._is_of_turn(turning) and self._is_of_program(other) and not self._value(turning).is_per_program:
                width = None if most is None else self._rows(distance, other) + abs(most) * (1 + is_both_ways)
                limits = ("start", "end") if is_both_ways else (_LIMITS[sign],)
                yield from (_Kept(at, is_by_data=False, width=width) for at in limits)

    def _rows(self, distance: Operation, of_program: str) -> int:
        """Of the tile of a program, along the dimension in which its distances differ."""
        tile, strides = tile_of(distance.text), self._value(of_program).strides
        sizes = zip(tile.shape, strides, strict=False) if tile else ()
        return math.prod(size for size, stride in sizes if stride != (0, ()))

    def _is_of_turn(self, name: str, *, is_index: bool = True) -> bool:
        """Whether a value differs from turn to turn; an index grows with each."""
        if self._value(name).turns != self._loop.depth + 1:
            return False
        return not is_index or not (self._flow.is_loaded(name) or self._falls(name))

    def _falls(self, name: str) -> bool:
        """Whether a value is what turns are subtracted from, as what is left of a length."""
        parts = self._flow.parts_of(name, ("tt.splat",))
        return any(each.name == "arith.subi" and self._is_of_turn(each.operands[1], is_index=False) for each in parts)

    def _is_of_program(self, name: str) -> bool:
        value = self._value(name)
        return value.is_per_program and value.turns <= self._loop.depth

    def _value(self, name: str) -> Value:
        return self._values.get(name, UNKNOWN)

    def _is_constant(self, name: str, pattern: re.Pattern[str]) -> bool:
        parts = list(self._flow.parts_of(name, ("tt.splat",)))
        return bool(parts) and all(pattern.search(each.text) for each in parts)
