"""A kernel's machine code without and with clocks, compared before anything is launched."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from bragg.code.instrument.loop_instructions import WAITS, changes, loop_counts
from bragg.code.sass.disassembler import disassemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bragg.code.instrument.assembling import Binary
    from bragg.code.instrument.clocked import Clocked


_DISASSEMBLE_WITHIN_S = 20.0


@dataclass(frozen=True)
class Comparison:
    """What clocks change in the machine code.

    Attributes:
        refused: Why the kernel must not be launched with them, as a JSON object; empty: it may.
        waits: Counts of waits in its loops that differ, without and with clocks, by opcode; None: there is no nvdisasm
            to compare them.
    """

    refused: Mapping[str, Any]
    waits: Mapping[str, tuple[int, int]] | None


class Guard:
    """Compares one kernel with what clocks make of it.

    Args:
        plain: Without clocks.
        symbol: Of its function.
        tool: Path of nvdisasm; None: there is none.
    """

    def __init__(self, plain: Binary, symbol: str, tool: str | None) -> None:
        self._plain = plain
        self._symbol = symbol
        self._tool = tool
        self._counts = self._counted(plain)

    def compared(self, clocked: Clocked) -> Comparison:
        """Compare it with the kernel with clocks."""
        binary = clocked.binary
        if binary.spill_bytes > self._plain.spill_bytes * clocked.copies:
            return Comparison({"why": "spills", "spill_bytes": binary.spill_bytes}, None)
        if binary.is_serialized > self._plain.is_serialized:
            return Comparison({"why": "serialized"}, None)
        counts = self._counted(binary)
        if self._counts is None or counts is None:
            return Comparison({}, None)
        found = changes(self._counts, counts, clocked.copies)
        for opcode, (before, after) in found.items():
            if not WAITS.fullmatch(opcode):
                return Comparison({"why": f"its loops would have {after:,} {opcode}, not {before:,}"}, None)
        return Comparison({}, found)

    def _counted(self, binary: Binary) -> Mapping[str, int] | None:
        if self._tool is None:
            return None
        try:
            return loop_counts(disassemble(self._tool, binary.cubin, _DISASSEMBLE_WITHIN_S), self._symbol)
        except (OSError, subprocess.SubprocessError):
            self._tool = None
            return None
