"""The texts of a kernel at each stage of its compilation, and which lines of one became which lines of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

from bragg.code.llvm_text import places_of_llvm
from bragg.code.mlir_text import places_of_mlir
from bragg.code.ptx_text import places_of_ptx
from bragg.code.sass.listing import Instruction, parse_listing
from bragg.code.source_place import CallChain, user_place

_PREFIX = "kernel:"
_ANY_COLUMN = -1

PlaceKey = tuple[tuple[str, int, int], ...]
"""Lines with a key in common come from one place."""


class Stage(str, Enum):
    """The stages of a kernel's compilation, first to last."""

    TTIR = "ttir"
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    SASS = "sass"


def source_name(key: str, stage: Stage) -> str:
    """Name of a text of a kernel among the sources of a profile; `key` is `symbol/hash`."""
    return f"{_PREFIX}{key}.{stage.value}"


def code_of_kernels(sources: Mapping[str, str]) -> dict[str, KernelCode]:
    """The kernels whose texts a profile has, by `symbol/hash`."""
    texts: dict[str, dict[Stage, str]] = defaultdict(dict)
    for name, text in sources.items():
        key, _, ending = name.removeprefix(_PREFIX).rpartition(".")
        if name.startswith(_PREFIX) and ending in {stage.value for stage in Stage}:
            texts[key][Stage(ending)] = text
    return {key: KernelCode(key, found) for key, found in texts.items()}


@dataclass(frozen=True, eq=False)
class KernelCode:
    """One compiled kernel.

    Attributes:
        key: `symbol/hash`: two specializations of a kernel differ in the hash.
        texts: By stage; stages may be missing.
    """

    key: str
    texts: Mapping[Stage, str]

    @property
    def symbol(self) -> str:
        """The kernel's name in its cubin."""
        return self.key.rpartition("/")[0]

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The machine code; empty when the profile does not have it."""
        return parse_listing(self.texts.get(Stage.SASS, ""))

    def lines(self, stage: Stage) -> list[str]:
        """The text to show; of machine code the instructions alone."""
        if stage is Stage.SASS:
            return [instruction.text for instruction in self.instructions]
        return self.texts.get(stage, "").splitlines()

    def places(self, stage: Stage) -> Sequence[CallChain]:
        """Where each of `lines` comes from."""
        return self._places[stage]

    def lines_of_source(self, stage: Stage, file: str, line: int) -> list[int]:
        """Indices of the lines that a line of the source became, or what it inlined."""
        return self._by_source[stage].get((file, line), [])

    def lines_of_place(self, stage: Stage, chain: CallChain) -> list[int]:
        """Indices of the lines that come from one place, as exactly as both sides know it.

        Machine code and what was compiled without columns knows lines only.
        """
        index = self._by_chain[stage]
        return next((index[key] for key in place_keys(chain) if key in index), [])

    def lines_of_lines(self, stage: Stage, line: int, other: Stage) -> list[int]:
        """Indices of the lines of another stage that belong to a line (its index) of this one."""
        if (stage, other) == (Stage.SASS, Stage.PTX):
            ptx_line = self.instructions[line].ptx_line
            return [ptx_line - 1] if ptx_line else []
        if (stage, other) == (Stage.PTX, Stage.SASS):
            return self._sass_of_ptx.get(line + 1, [])
        return self.lines_of_place(other, self.places(stage)[line])

    @cached_property
    def instruction_at(self) -> dict[int, Instruction]:
        """Instructions by offset."""
        return {instruction.offset_bytes: instruction for instruction in self.instructions}

    @cached_property
    def _places(self) -> dict[Stage, Sequence[CallChain]]:
        return {
            Stage.TTIR: places_of_mlir(self.texts.get(Stage.TTIR, "")),
            Stage.TTGIR: places_of_mlir(self.texts.get(Stage.TTGIR, "")),
            Stage.LLIR: places_of_llvm(self.texts.get(Stage.LLIR, "")),
            Stage.PTX: places_of_ptx(self.texts.get(Stage.PTX, "")),
            Stage.SASS: [instruction.chain for instruction in self.instructions],
        }

    @cached_property
    def _sass_of_ptx(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for index, instruction in enumerate(self.instructions):
            found[instruction.ptx_line].append(index)
        return found

    @cached_property
    def _by_source(self) -> dict[Stage, dict[tuple[str, int], list[int]]]:
        found: dict[Stage, dict[tuple[str, int], list[int]]] = {stage: defaultdict(list) for stage in Stage}
        for stage, chains in self._places.items():
            for index, chain in enumerate(chains):
                for place in {(place.file, place.line) for place in chain}:
                    found[stage][place].append(index)
        return found

    @cached_property
    def _by_chain(self) -> dict[Stage, dict[PlaceKey, list[int]]]:
        found: dict[Stage, dict[PlaceKey, list[int]]] = {stage: defaultdict(list) for stage in Stage}
        for stage, chains in self._places.items():
            for index, chain in enumerate(chains):
                for key in place_keys(chain):
                    found[stage][key].append(index)
        return found


# A kernel has tens of places and thousands of lines.
@lru_cache(maxsize=1 << 14)
def place_keys(chain: CallChain) -> tuple[PlaceKey, ...]:
    """Keys to find a place by, most exact first: the place with all calls, the place alone, the user's line."""
    own = user_place(chain)
    if own is None:
        return ()
    exact = tuple((place.file, place.line, place.column) for place in chain)
    keys = [exact, exact[:1]] if all(place.column for place in chain) else []
    return tuple(dict.fromkeys([*keys, ((own.file, own.line, _ANY_COLUMN),)]))
