"""Loops one after the other that load the same tiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from bragg.code.compiled.operations import Module, Operation, place_of_chain, tile_of
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.model.kernels.compiled import RepeatedPass

__all__ = ["repeated_passes"]

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_BOUNDS = slice(1, 4)  # of the operands of scf.for: start, end, step


def repeated_passes(module: Module, flow: TileDataflow) -> Iterator[RepeatedPass]:
    """Tiles that at least two loops of the same turns load, one loop after the other.

    Args:
        module: Of TTIR.
        flow: Where its values come from.
    """
    loops = [(row, each) for row, each in enumerate(module.operations) if each.name == "scf.for"]
    found: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for row, loop in loops:
        addresses = _Addresses(flow, loop)
        seen = {}
        for load in module.operations[row + 1 :]:
            if load.loop == row and load.name == "tt.load" and tile_of(load.text):
                turns = tuple(map(addresses.of, loop.operands[_BOUNDS]))
                seen[loop.loop, loop.branches, turns, addresses.of(load.operands[0])] = load
        for key, load in seen.items():
            found[key].append(load)
    for loads in found.values():
        tile = tile_of(loads[0].text)
        if len(loads) > 1 and tile:
            yield RepeatedPass(
                tuple(place_of_chain(module.operations[each.loop].chain) for each in loads),
                tuple(place_of_chain(each.chain) for each in loads),
                tile.elements * tile.element_bytes,
            )


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
