"""A kernel with clocks as machine code, as close to the kernel without them as it can be."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bragg.code.disassembler import disassemble
from bragg.code.instrument.assembling import Binary, assemble_as
from bragg.code.instrument.blocks import Kernel
from bragg.code.instrument.machine_code import fillers_for, is_inside, with_code_of
from bragg.code.instrument.rewriting import Instrumented, instrument, plain_code, room
from bragg.code.instrument.segments import Activities, Selection
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, Store

__all__ = ["Clocked", "Tools", "clocked", "clocked_at_ends", "clocked_in_part"]

_DISASSEMBLE_WITHIN_S = 20.0


@dataclass(frozen=True)
class Tools:
    """What makes machine code.

    Attributes:
        ptxas: Path of the program.
        options: Of ptxas, beside the target.
        limit_s: Time that ptxas may take.
        disassembler: Path of nvdisasm; None: there is none.
    """

    ptxas: str
    options: Sequence[str]
    limit_s: float
    disassembler: str | None


@dataclass(frozen=True)
class Clocked:
    """A kernel with clocks.

    Attributes:
        instrumented: Its PTX and its frames.
        binary: Its machine code.
        copies: How often the kernel's own code stands in it.
        is_rest_exact: Blocks without frames have headers, and execute the machine code of the kernel, instruction for
            instruction.
    """

    instrumented: Instrumented
    binary: Binary
    copies: int = 1
    is_rest_exact: bool = False


def clocked(
    kernel: Kernel, selection: Selection, plain: Binary, tools: Tools, store: Store = IN_GLOBAL_MEMORY
) -> Clocked:
    """All blocks execute clocks.

    Raises:
        ValueError: The kernel cannot have them, or ptxas refuses it.
    """
    found = instrument(kernel, selection, store=store)
    return Clocked(found, _assembled(found, plain, tools))


def clocked_in_part(
    kernel: Kernel, selection: Selection, plain: Binary, tools: Tools, store: Store = IN_GLOBAL_MEMORY
) -> Clocked:
    """Blocks with frames execute clocks, and the others the kernel's machine code, or where that cannot be, its PTX.

    Raises:
        ValueError: The kernel cannot have them, or ptxas refuses it.
    """
    exact = _with_machine_code(kernel, selection, plain, tools, store)
    if exact is not None:
        return exact
    found = instrument(kernel, selection, plain_code(kernel), store)
    return Clocked(found, _assembled(found, plain, tools), 2)


def clocked_at_ends(kernel: Kernel, plain: Binary, tools: Tools) -> Clocked:
    """All blocks execute the kernel's machine code between two readings, or where that cannot be, its PTX.

    Raises:
        ValueError: The kernel cannot have them, or ptxas refuses it.
    """
    nothing = Activities(())
    return _with_machine_code(kernel, nothing, plain, tools) or clocked(kernel, nothing, plain, tools)


def _with_machine_code(
    kernel: Kernel, selection: Selection, plain: Binary, tools: Tools, store: Store = IN_GLOBAL_MEMORY
) -> Clocked | None:
    """None: the kernel's machine code cannot be put beside that with clocks."""
    if tools.disassembler is None:
        return None
    symbol = kernel.name
    try:
        found = instrument(kernel, selection, room(fillers_for(plain, symbol)), store)
        binary = _assembled(found, plain, tools)
        code, listing = (disassemble(tools.disassembler, each.cubin, _DISASSEMBLE_WITHIN_S) for each in (plain, binary))
        placed = with_code_of(plain, code, binary, listing, symbol)
        whole = disassemble(tools.disassembler, placed.binary.cubin, _DISASSEMBLE_WITHIN_S)
    except (ValueError, OSError, subprocess.SubprocessError):
        return None
    return Clocked(found, placed.binary, 2, True) if is_inside(code[symbol], whole[symbol], placed) else None


def _assembled(found: Instrumented, plain: Binary, tools: Tools) -> Binary:
    return assemble_as(plain, tools.ptxas, found.text, tools.options, tools.limit_s)
