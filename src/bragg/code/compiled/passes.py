"""Loops one after the other that load or store the same tiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from bragg.code.compiled.operations import Module, Operation, place_of_chain, tile_of
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.model import Place
from bragg.model.kernels.compiled import RepeatedPass

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_BOUNDS = slice(1, 4)  # of the operands of scf.for: start, end, step


def repeated_passes(module: Module, flow: TileDataflow) -> Iterator[RepeatedPass]:
    """Tiles that at least two loops of the same turns load, one loop after the other.

    Args:
        module: Of TTIR.
        flow: Where its values come from.
    """
    for accesses in _by_address(module, flow).values():
        loads = list({each.loop: each for each in accesses if each.name == "tt.load"}.values())
        tile = tile_of(loads[0].text) if len(loads) > 1 else None
        if tile:
            yield RepeatedPass(
                tuple(place_of_chain(module.operations[each.loop].chain) for each in loads),
                tuple(place_of_chain(each.chain) for each in loads),
                tile.elements * tile.element_bytes,
            )


def rewritten(module: Module, flow: TileDataflow) -> Iterator[Place]:
    """Stores of tiles in a loop that a later one of the same turns loads, changes and stores again.

    Args:
        module: Of TTIR.
        flow: Where its values come from.
    """
    for accesses in _by_address(module, flow).values():
        first, *later = accesses
        again = [each.name for each in later if each.loop != first.loop]
        if first.name == "tt.store" and again == ["tt.load", "tt.store"]:
            yield place_of_chain(first.chain)


def _by_address(module: Module, flow: TileDataflow) -> Mapping[tuple[object, ...], list[Operation]]:
    """Loads and stores of tiles in loops, in order, by the turns of their loop and by their address."""
    found: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for row, loop in enumerate(module.operations):
        if loop.name != "scf.for":
            continue
        addresses = _Addresses(flow, loop)
        turns = tuple(map(addresses.of, loop.operands[_BOUNDS]))
        for access in module.operations[row + 1 :]:
            if access.loop == row and access.name in ("tt.load", "tt.store") and tile_of(access.text):
                found[loop.loop, loop.branches, turns, addresses.of(access.operands[0])].append(access)
    return found


class _Addresses:
    """What values of a loop are computed from, so that those of different loops can be compared.

    Args:
        flow: Where values come from.
        loop: Whose counter is the same as that of another one.
    """

    def __init__(self, flow: TileDataflow, loop: Operation) -> None:
        self._flow, self._loop = flow, loop
        self._known: dict[str, int] = {loop.operands[0]: hash("turn")}

    def of(self, name: str) -> int:
        if name not in self._known:
            made = self._flow.made_by(name)
            if made is not None:
                parts = (_VALUE.sub("%", made.text.partition(" = ")[2]), *map(self.of, made.operands))
            else:
                parts = ("carried", self.of(self._loop.block[name])) if name in self._loop.block else (name,)
            self._known[name] = hash(parts)
        return self._known[name]
