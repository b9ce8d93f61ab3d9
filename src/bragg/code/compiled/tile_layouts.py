"""Facts of a kernel from TTGIR: how the compiler dealt out tiles to threads, and what it pipelined."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.code.compiled.operations import LOOPS, Layout, Module, Operation, place_of_chain, tile_of
from bragg.code.source_place import CallChain
from bragg.model.kernels.compiled import Conversion, Reduction

_CONTIGUITY = re.compile(r"contiguity = (\d+)")
_BUFFERS = re.compile(r"memdesc<(\d+)x\d+x\d+")
_AXIS = re.compile(r"axis = (\d+)")
_ASYNC = re.compile(r"async_copy_global_to_local|async_tma_(?:copy_global_to_local|gather)")
_ACCESSES = re.compile(r"tt\.(?:load|store)$|\w+\.async_copy_global_to_local$")
# Widest access of one thread, since sm_30.
_WIDEST_BYTES = 16


class TileLayouts:
    """Facts of a module of TTGIR.

    Args:
        module: It.
    """

    def __init__(self, module: Module) -> None:
        self._module = module

    def attribute(self, name: str) -> str | None:
        """An attribute of the module: `num-warps`, `num-ctas`, `target`."""
        return next((text for key, text in self._module.attributes.items() if key.endswith(f".{name}")), None)

    def widths(self) -> Iterator[tuple[CallChain, int]]:
        """What one thread accesses at once, in bytes, by where the access comes from."""
        for operation in self._module.operations:
            if not _ACCESSES.search(operation.name):
                continue
            tile = tile_of(operation.text)
            layout = self._layout(tile.layout) if tile else None
            contiguity = _CONTIGUITY.search(operation.text)
            per_thread = int(contiguity[1]) if contiguity else layout.per_thread if layout else None
            if tile and per_thread:
                yield operation.chain, min(per_thread * tile.element_bytes, _WIDEST_BYTES)

    def loops(self) -> Iterator[tuple[CallChain, bool, int]]:
        """Of each loop whether it copies ahead, and for how many turns."""
        for row, operation in enumerate(self._module.operations):
            if operation.name in LOOPS:
                inside = [each for each in self._module.operations[row + 1 :] if each.loop == row]
                is_pipelined = any(_ASYNC.search(each.name) for each in inside)
                buffers = [int(count) for each in inside for count in _BUFFERS.findall(each.text)]
                yield operation.chain, is_pipelined, max(buffers, default=1) if is_pipelined else 1

    def conversions(self) -> Iterator[tuple[CallChain, Conversion]]:
        """Changes of layout in loops, with all of where they come from."""
        for operation in self._module.operations:
            tile = tile_of(operation.text)
            if operation.name.endswith(".convert_layout") and operation.depth and tile and tile.elements > 1:
                reason = self._transposition(operation)
                place = place_of_chain((reason or operation).chain)
                yield operation.chain, Conversion(place, tile.elements, is_transposed=reason is not None)

    def _transposition(self, conversion: Operation) -> Operation | None:
        """The transposition in the same loop for which layouts of another order are needed."""
        before, after = (tile_of(conversion.text, number) for number in (0, 1))
        orders = [self._order(tile.layout) for tile in (before, after) if tile]
        if len(orders) < 2 or None in orders or orders[0] == orders[1]:
            return None
        same = (each for each in self._module.operations if each.loop == conversion.loop)
        return next((each for each in same if each.name == "tt.trans"), None)

    def reductions(self) -> Iterator[Reduction]:
        """Reductions of tiles."""
        for operation in self._module.operations:
            if operation.name != "tt.reduce":
                continue
            tile, axis = tile_of(operation.text.rpartition(" : ")[2]), _AXIS.search(operation.text)
            if tile and axis:
                yield Reduction(
                    place_of_chain(operation.chain),
                    operation.depth > 0,
                    tile.elements,
                    self._crosses_warps(tile.layout, tile.shape, int(axis[1])),
                    self._module.is_only_carried(operation),
                )

    def _crosses_warps(self, name: str, shape: tuple[int, ...], axis: int) -> bool | None:
        layout = self._layout(name)
        warps = layout.lists.get("warpsPerCTA") if layout else None
        if layout is None or warps is None or axis >= len(warps):
            return None
        sizes, threads = (layout.lists.get(key) for key in ("sizePerThread", "threadsPerWarp"))
        # Beyond the tile, warps hold copies.
        fits = bool(sizes and threads and shape[axis] <= sizes[axis] * threads[axis])
        return warps[axis] > 1 and not fits

    def _order(self, name: str) -> tuple[int, ...] | None:
        layout = self._layout(name)
        return layout.lists.get("order") if layout else None

    def _layout(self, name: str) -> Layout | None:
        return self._module.layouts.get(name)
