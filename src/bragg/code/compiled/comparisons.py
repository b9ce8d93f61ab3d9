"""Elements of tiles that are compared with each of many values, or with each other, where one operation does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bragg.code.compiled.operations import Module, Operation, place_of_chain, tile_of
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.code.compiled.values import UNKNOWN, Value
from bragg.model import Place
from bragg.model.kernels.compiled import Compares, Comparison

_JOINS = ("arith.andi", "arith.ori", "arith.extui", "arith.uitofp", "arith.sitofp")
_COMPARED = re.compile(r" = arith\.cmp[if] (?:o|u|s)?(?P<order>eq|[lg][te]),")
_ADDS = ("arith.addf", "arith.addi")
_AXIS = re.compile(r"axis = (\d+)")


@dataclass(frozen=True)
class _Reduced:
    """What a sum adds up: values where a comparison holds, or how often it does.

    Attributes:
        sum: The reduction.
        axis: Along which it adds up.
        conditions: The comparisons.
        chosen: The value that is added where they hold; None: they are counted.
    """

    sum: Operation
    axis: int
    conditions: tuple[Operation, ...]
    chosen: str | None


def comparisons(module: Module, values: Mapping[str, Value], flow: TileDataflow) -> Iterator[Comparison]:
    """Counts, choices, sums of prefixes, ranks and greatest elements that are found by comparing.

    Args:
        module: Of TTIR.
        values: Its values.
        flow: Where they come from.
    """
    return _Comparisons(module, values, flow).found()


class _Comparisons:
    def __init__(self, module: Module, values: Mapping[str, Value], flow: TileDataflow) -> None:
        self._module, self._values, self._flow = module, values, flow
        rows = ((row, each) for row, each in enumerate(module.operations) if each.name == "tt.reduce" and each.operands)
        self._sums = {row: self._reduced(row, each) for row, each in rows}

    def found(self) -> Iterator[Comparison]:
        yield from self._unrolled()
        for row, operation in enumerate(self._module.operations):
            if row in self._sums:
                reduced = self._sums[row]
                of_sum = self._of_sum(reduced) if reduced else None
                yield from (each for each in (of_sum or self._greatest(operation),) if each)
            elif operation.name == "arith.select" and self._is_looked_up(operation):
                yield self._in_loop(operation, Compares.CHOOSES)
            elif operation.name in (*_ADDS, "arith.select") and self._is_placed(operation):
                yield self._in_loop(operation, Compares.PLACES)

    def _unrolled(self) -> Iterator[Comparison]:
        """Counts of one bin each, of bins that are written in the code."""
        sums: Counter[Place] = Counter()
        for reduced in self._sums.values():
            if reduced and reduced.chosen is None and any(map(self._is_with_constant, reduced.conditions)):
                sums[place_of_chain(reduced.sum.chain)] += 1
        yield from (Comparison(place, Compares.COUNTS, count, False) for place, count in sums.items() if count > 1)

    def _is_with_constant(self, compared: Operation) -> bool:
        value = self._values.get(compared.operands[1], UNKNOWN)
        return value.is_constant and _is_equality(compared) and self._flow.is_loaded(compared.operands[0])

    def _is_placed(self, addition: Operation) -> bool:
        """Whether a loop goes over edges, and counts or keeps for each element those that are below it."""
        loop = self._module.operations[addition.loop] if addition.depth else None
        if loop is None or tile_of(addition.text) is None or not loop.block.keys() & {*addition.operands}:
            return False
        others = [each for each in addition.operands if each not in loop.block]
        compared = [each for name in others[:1] for each in self._compared(name)]
        return any(not _is_equality(each) and self._is_with_entry(each) for each in compared)

    def _is_with_entry(self, compared: Operation) -> bool:
        """Whether elements that were loaded before a loop are compared with a number that each turn loads."""
        for tile, number in (compared.operands[:2], compared.operands[1::-1]):
            one = self._flow.made_by(number)
            entry = self._flow.made_by(one.operands[0]) if one and one.name == "tt.splat" else None
            of_tile = self._values.get(tile, UNKNOWN)
            is_entry = entry is not None and entry.name == "tt.load" and entry.loop == compared.loop
            if is_entry and of_tile.turns < compared.depth and None in of_tile.strides and self._flow.is_loaded(tile):
                return True
        return False

    def _reduced(self, row: int, operation: Operation) -> _Reduced | None:
        """What a sum of comparisons adds up; None: it is another reduction."""
        following = self._module.operations[row + 1 : row + 2]
        axis = _AXIS.search(operation.text)
        if axis is None or not following or following[0].name not in _ADDS:
            return None
        condition, chosen = operation.operands[0], None
        made = self._flow.made_by(condition)
        if made is not None and made.name == "arith.select":
            condition, chosen = made.operands[:2]
        elif made is not None and made.name == "arith.mulf":
            sides = [made.operands[:2], made.operands[1::-1]]
            condition, chosen = next(((each, other) for each, other in sides if self._compared(each)), sides[0])
        found = self._compared(condition)
        return _Reduced(operation, int(axis[1]), found, chosen) if found else None

    def _compared(self, condition: str) -> tuple[Operation, ...]:
        return tuple(each for each in self._flow.parts_of(condition, _JOINS) if _COMPARED.search(each.text))

    def _of_sum(self, reduced: _Reduced) -> Comparison | None:
        for compared in reduced.conditions:
            if self._is_with_turn(compared) and self._stays(reduced.sum, reduced.chosen):
                return self._in_loop(reduced.sum, Compares.COUNTS)
            kind = self._kind(reduced, compared)
            tile = tile_of(compared.text)
            if kind and tile:
                spread = self._flow.spread_along(compared.operands[self._loaded_side(compared)])
                count = tile.shape[reduced.axis if spread is None else spread]
                return Comparison(place_of_chain(reduced.sum.chain), kind, count, reduced.sum.depth > 0)
        return None

    def _kind(self, reduced: _Reduced, compared: Operation) -> Compares | None:
        """What pairs of elements along two dimensions are compared for."""
        sides = compared.operands[:2]
        spread = [self._flow.spread_along(each) for each in sides]
        if None in spread or len({*spread}) != len(sides):
            return None
        is_equal = _is_equality(compared)
        loaded = [self._flow.is_loaded(each) for each in sides]
        along = self._flow.spread_along(reduced.chosen) if reduced.chosen else None
        if all(loaded) and not is_equal and reduced.chosen is None:
            first, second = (self._root(each) for each in sides)
            return Compares.RANKS if first == second else None
        if not any(loaded) and not is_equal and along is not None and along != reduced.axis:
            return Compares.PREFIXES
        if sum(loaded) != 1 or not is_equal:
            return None
        bins = spread[loaded.index(True)]
        if reduced.axis != bins and (reduced.chosen is None or along == bins):
            return Compares.COUNTS
        return Compares.CHOOSES if reduced.axis == bins and along == spread[loaded.index(False)] else None

    def _loaded_side(self, compared: Operation) -> int:
        return 0 if self._flow.is_loaded(compared.operands[0]) else 1

    def _root(self, name: str) -> str:
        """The value that a tile repeats along some dimensions."""
        made = self._flow.made_by(name)
        while made is not None and made.name in ("tt.broadcast", "tt.expand_dims"):
            name = made.operands[0]
            made = self._flow.made_by(name)
        return name

    def _is_with_turn(self, compared: Operation) -> bool:
        """Whether elements that were loaded before a loop are compared with a number of each turn."""
        for tile, number in (compared.operands[:2], compared.operands[1::-1]):
            of_turn, of_tile = self._values.get(number, UNKNOWN), self._values.get(tile, UNKNOWN)
            is_one = bool(of_turn.strides) and set(of_turn.strides) == {(0, ())}
            if (
                is_one
                and of_turn.turns == compared.depth > of_tile.turns
                and not self._flow.is_loaded(number)
                and None in of_tile.strides
                and self._flow.is_loaded(tile)
            ):
                return True
        return False

    def _stays(self, inside: Operation, chosen: str | None) -> bool:
        return chosen is None or self._values.get(chosen, UNKNOWN).turns < inside.depth

    def _is_looked_up(self, choice: Operation) -> bool:
        """Whether a loop goes over a table, and keeps of each entry the elements that want it."""
        condition, if_equal, otherwise = choice.operands[:3]
        loop = self._module.operations[choice.loop] if choice.depth else None
        entry = self._flow.made_by(if_equal)
        loaded = self._flow.made_by(entry.operands[0]) if entry and entry.name == "tt.splat" else None
        compared = self._compared(condition)
        return (
            loop is not None
            and otherwise in loop.block
            and loaded is not None
            and loaded.name == "tt.load"
            and any(_is_equality(each) and self._is_with_turn(each) for each in compared)
        )

    def _greatest(self, reduction: Operation) -> Comparison | None:
        """The greatest element of a tile that each turn takes it out of."""
        loop = self._module.operations[reduction.loop] if reduction.depth else None
        tile = reduction.operands[0]
        if loop is None or tile not in loop.block:
            return None
        inside = [each for each in self._module.operations if each.loop == reduction.loop]
        handed_on = {name for each in inside if each.name == "scf.yield" for name in each.operands}
        taken_out = [
            each
            for each in inside
            if each.name == "arith.select" and tile in each.operands[1:] and handed_on & {*each.results}
        ]
        others = [self._flow.made_by(name) for each in taken_out for name in each.operands[1:] if name != tile]
        is_constant = bool(others) and all(each is not None and each.name == "arith.constant" for each in others)
        return self._in_loop(reduction, Compares.GREATEST) if is_constant else None

    def _in_loop(self, operation: Operation, kind: Compares) -> Comparison:
        turns = self._flow.turns(self._module.operations[operation.loop])
        return Comparison(place_of_chain(operation.chain), kind, turns, in_loop=True)


def _is_equality(compared: Operation) -> bool:
    found = _COMPARED.search(compared.text)
    return found is not None and found["order"] == "eq"
