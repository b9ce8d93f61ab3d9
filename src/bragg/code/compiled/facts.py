"""The facts of a compiled kernel, from all texts that a profile keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bragg.code.compiled import instructions
from bragg.code.compiled.bank_conflicts import bank_conflicts
from bragg.code.compiled.counted_loops import with_counted_loops
from bragg.code.compiled.operations import Module, read_module
from bragg.code.compiled.tile_layouts import TileLayouts
from bragg.code.compiled.tile_program import TileProgram
from bragg.code.sass.listing import INSTRUCTION_BYTES
from bragg.code.source_map import KernelCode, PlaceKey, Stage, place_keys
from bragg.code.source_place import CallChain
from bragg.model.kernels.compiled import Access, CompiledKernel, Conversion, Counted, Loop

# What damaged or unknown texts make of readers of text.
_UNREADABLE = (ValueError, IndexError, KeyError, RecursionError)

_TRIGONOMETRIC = ("sin", "cos", "tan")


def facts_of(code: KernelCode, sizes: Mapping[str, int]) -> CompiledKernel:
    """What the texts of a kernel tell.

    Args:
        code: Its texts.
        sizes: Whole numbers that a launch passed to it, by argument; those that are known.
    """
    reader = _Reader(code, sizes)
    return CompiledKernel(key=code.key, **reader.read(), unread=reader.unread)


class _Reader:
    def __init__(self, code: KernelCode, sizes: Mapping[str, int]) -> None:
        self._code, self._sizes = code, sizes
        self.unread: dict[str, str] = {}

    def read(self) -> dict[str, Any]:
        """Attributes of `CompiledKernel`; those of a text that is missing or unreadable are left out."""
        found: dict[str, Any] = {}
        for stage, read in (
            (Stage.TTIR, self._tile_program),
            (Stage.TTGIR, self._tile_layouts),
            (Stage.PTX, self._ptx),
            (Stage.SASS, self._machine_code),
        ):
            if self._code.texts.get(stage):
                try:
                    found |= read(found)
                except _UNREADABLE as error:
                    self.unread[stage.value] = f"its {stage.value.upper()} could not be read: {error}"
        return found

    def _module(self, stage: Stage) -> Module:
        return read_module(self._code.texts[stage], self._code.places(stage))

    def _tile_program(self, _: Mapping[str, Any]) -> dict[str, Any]:
        module = with_counted_loops(self._module(Stage.TTIR))
        program = TileProgram(module, self._sizes)
        accesses = tuple(replace(access, compiled_bytes=self._width(chain)) for chain, access in program.accesses())
        self._access_chains = [chain for chain, _ in program.accesses()]
        self._loop_chains = [chain for chain, _ in program.loops()]
        return {
            "arguments": module.arguments,
            "accesses": accesses,
            "dots": tuple(program.dots()),
            "products_by_sums": tuple(program.products_by_sums()),
            "loops": tuple(loop for _, loop in program.loops()),
            "slow": tuple(program.slow()),
            "atomics": tuple(program.atomics()),
            "locks": tuple(program.locks()),
            "masked_loops": tuple(program.masked_loops()),
            "comparisons": tuple(program.comparisons()),
            "repeated_passes": tuple(program.repeated_passes()),
            "rewritten": tuple(program.rewritten()),
            "single_loads": tuple(program.single_loads()),
            "idle_barriers": tuple(program.idle_barriers()),
            "order": program.order(),
            "prints": tuple(program.prints()),
        }

    def _width(self, chain: CallChain) -> int | None:
        return instructions.width_at(self._code, chain) if self._code.texts.get(Stage.PTX) else None

    def _tile_layouts(self, found: Mapping[str, Any]) -> dict[str, Any]:
        module = self._module(Stage.TTGIR)
        layouts = TileLayouts(module)
        warps, ctas = layouts.attribute("num-warps"), layouts.attribute("num-ctas")
        return {
            "arguments": found.get("arguments", module.arguments),
            "num_warps": int(warps) if warps else None,
            "num_ctas": int(ctas) if ctas else None,
            "target": layouts.attribute("target"),
            "accesses": self._with_widths(found.get("accesses"), layouts),
            "loops": self._with_pipelining(found.get("loops"), layouts),
            "conversions": self._conversions(layouts),
            "conflicts": tuple(bank_conflicts(self._code.texts[Stage.TTGIR], module)),
            "reductions": tuple(layouts.reductions()),
        }

    def _with_widths(self, accesses: tuple[Access, ...] | None, layouts: TileLayouts) -> tuple[Access, ...] | None:
        if accesses is None:
            return None
        widths: dict[PlaceKey, int] = {}
        for chain, width in layouts.widths():
            for key in place_keys(chain)[:1]:
                widths[key] = max(widths.get(key, 0), width)
        return tuple(
            replace(access, intended_bytes=next((widths[key] for key in place_keys(chain)[:1] if key in widths), None))
            for access, chain in zip(accesses, self._access_chains, strict=True)
        )

    def _with_pipelining(self, loops: tuple[Loop, ...] | None, layouts: TileLayouts) -> tuple[Loop, ...] | None:
        if loops is None:
            return None
        known: dict[CallChain, tuple[bool, int]] = {}
        for chain, is_pipelined, buffers in layouts.loops():
            known[chain] = (is_pipelined or known.get(chain, (False, 1))[0], max(buffers, known.get(chain, (0, 1))[1]))
        return tuple(
            replace(loop, is_pipelined=known[chain][0], buffers=known[chain][1]) if chain in known else loop
            for loop, chain in zip(loops, self._loop_chains, strict=True)
        )

    def _conversions(self, layouts: TileLayouts) -> tuple[Conversion, ...] | None:
        """Those that go through shared memory, which the PTX tells."""
        if not self._code.texts.get(Stage.PTX):
            return None
        found = layouts.conversions()
        return tuple(each for chain, each in found if instructions.is_through_shared(self._code, chain))

    def _ptx(self, found: Mapping[str, Any]) -> dict[str, Any]:
        text = self._code.texts[Stage.PTX]
        doubles = _without(found, instructions.doubles(self._code))
        return {"tensor_cores": instructions.tensor_cores(text), "doubles": doubles}

    def _machine_code(self, found: Mapping[str, Any]) -> dict[str, Any]:
        code = self._code.instructions
        if not code:
            raise ValueError("it has no instructions")
        size: dict[str, Any] = {
            "code_bytes": code[-1].offset_bytes + INSTRUCTION_BYTES,
            "instructions": instructions.counted(each.chain for each in code),
        }
        has_text = any(each.text for each in code)
        return {**size, "spills": _without(found, instructions.spills(self._code))} if has_text else size


def _without(found: Mapping[str, Any], counted: tuple[Counted, ...]) -> tuple[Counted, ...]:
    """Without lines of trigonometric functions, which reduce large arguments in doubles and local memory."""
    places = {each.place for each in found.get("slow", ()) if each.name in _TRIGONOMETRIC}
    return tuple(each for each in counted if each.place not in places)
