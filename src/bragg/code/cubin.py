"""Where the instructions of a cubin come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.code.ptx_text import places_of_ptx
from bragg.code.sass.listing import INSTRUCTION_BYTES, Instruction
from bragg.code.source_place import CallChain, SourcePlace
from bragg.core import core
from bragg.model.table import Int64Array

_UNKNOWN = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class Cubin:
    """The tables of a cubin, as `read_cubin` of the core gives them.

    Attributes:
        tables: Columns of each table, uint32 [n_rows], or lists of strings.
    """

    tables: Mapping[str, Any]

    @classmethod
    def of(cls, image: bytes) -> Cubin:
        """Read a cubin.

        Raises:
            ValueError: It is none, or a damaged one.
        """

        def columns(table: Any) -> Any:
            if not isinstance(table, dict):
                return table
            return {
                name: np.frombuffer(column, np.uint32).astype(np.int64) if isinstance(column, bytes) else column
                for name, column in table.items()
            }

        return cls({name: columns(table) for name, table in core.read_cubin(image).items()})

    @property
    def ptx(self) -> list[str]:
        """The PTX that it was made of, as far as ptxas kept it: without comments and places."""
        texts: list[str] = self.tables["ptx"]
        return texts

    def code(self, symbol: str, texts: Mapping[int, str], ptx: str) -> list[Instruction]:
        """The instructions of a kernel and of what it calls within its section.

        Args:
            symbol: The kernel.
            texts: Text of its instructions by offset; those that are missing stay empty.
            ptx: What the cubin was made of; its places are better than the cubin's: with columns, with what Triton
                before 3.8 inlined, and right in inline assembly. Empty: it is not known.

        Raises:
            ValueError: The cubin has no such kernel.
        """
        section, size_bytes = self._place(symbol)
        offsets = np.arange(0, size_bytes, INSTRUCTION_BYTES)
        locations = self._column("lines", "location", section, offsets)
        ptx_lines = self._column("ptx_lines", "line", section, offsets)
        places = places_of_ptx(ptx)
        chains = {location: self._chain(location) for location in np.unique(locations).tolist()}
        code = []
        for offset, location, line in zip(offsets.tolist(), locations.tolist(), ptx_lines.tolist(), strict=True):
            chain = places[line - 1] if 0 < line <= len(places) else ()
            ptx_line = line if line != _UNKNOWN else 0
            code.append(Instruction(offset, texts.get(offset, ""), chain or chains[location], ptx_line))
        return code

    def _place(self, symbol: str) -> tuple[int, int]:
        """Number of the section of a kernel, and the size of its code."""
        functions = self.tables["functions"]
        if symbol not in functions["name"]:
            raise ValueError(f"it has no kernel {symbol}")
        row = functions["name"].index(symbol)
        return int(functions["section"][row]), int(functions["size_bytes"][row])

    def _column(self, table: str, column: str, section: int, offsets: Int64Array) -> Int64Array:
        """A column at each offset: that of the last row before it; unknown before the first row."""
        rows = self.tables[table]
        inside = rows["section"] == section
        row = np.searchsorted(rows["offset_bytes"][inside], offsets, side="right")
        values: Int64Array = np.concatenate([[_UNKNOWN], rows[column][inside]])[row]
        return values

    def _chain(self, location: int) -> CallChain:
        locations, names = self.tables["locations"], self.tables["names"]
        chain = []
        while location != _UNKNOWN:
            file, line, function = (int(locations[name][location]) for name in ("file", "line", "function"))
            chain.append(SourcePlace(names[file], line, 0, names[function] if function != _UNKNOWN else ""))
            location = int(locations["call_site"][location])
        return tuple(chain)
