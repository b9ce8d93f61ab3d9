"""A kernel's machine code without and with clocks, compared before anything is launched."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from bragg.code.disassembler import disassemble, find_disassembler
from bragg.code.instrument.loop_instructions import WAITS, changes, loop_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bragg.code.instrument.assembling import Binary

__all__ = ["Comparison", "Guard"]

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
    """

    def __init__(self, plain: Binary, symbol: str) -> None:
        self._plain = plain
        self._symbol = symbol
        self._tool = find_disassembler(os.environ)
        self._counts = self._counted(plain)

    def compared(self, clocked: Binary, copies: int) -> Comparison:
        """Compare.

        Args:
            clocked: With clocks.
            copies: How often the kernel's own code stands in it.
        """
        if clocked.spill_bytes > self._plain.spill_bytes * copies:
            return Comparison({"why": "spills", "spill_bytes": clocked.spill_bytes}, None)
        if clocked.is_serialized > self._plain.is_serialized:
            return Comparison({"why": "serialized"}, None)
        counts = self._counted(clocked)
        if self._counts is None or counts is None:
            return Comparison({}, None)
        found = changes(self._counts, counts, copies)
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
