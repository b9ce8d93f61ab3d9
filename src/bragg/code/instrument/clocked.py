"""A kernel with clocks as machine code, as close to the kernel without them as it can be."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bragg.code.instrument.assembling import Binary, assemble_as
from bragg.code.instrument.blocks import Kernel
from bragg.code.instrument.machine_code import is_inside, room_for, with_code_of
from bragg.code.instrument.rewriting import Instrumented, instrument, plain_code
from bragg.code.instrument.segments import Selection
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, Store
from bragg.code.sass.disassembler import disassemble

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
        is_rest_exact: Blocks without clocks execute the machine code of the kernel, instruction for instruction.
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
    exact = _with_exact_rest(kernel, selection, plain, tools, store)
    if exact is not None:
        return exact
    found = instrument(kernel, selection, plain_code(kernel), store)
    return Clocked(found, _assembled(found, plain, tools), 2)


def _with_exact_rest(kernel: Kernel, selection: Selection, plain: Binary, tools: Tools, store: Store) -> Clocked | None:
    """None: the kernel's machine code cannot be put beside that with clocks."""
    if tools.disassembler is None:
        return None
    symbol = kernel.name
    try:
        found = instrument(kernel, selection, room_for(plain, symbol), store)
        binary = _assembled(found, plain, tools)
        code, listing = (disassemble(tools.disassembler, each.cubin, _DISASSEMBLE_WITHIN_S) for each in (plain, binary))
        both = with_code_of(plain, code, binary, listing, symbol)
        whole = disassemble(tools.disassembler, both.cubin, _DISASSEMBLE_WITHIN_S)
    except (ValueError, OSError, subprocess.SubprocessError):
        return None
    return Clocked(found, both, 2, True) if is_inside(code[symbol], whole[symbol]) else None


def _assembled(found: Instrumented, plain: Binary, tools: Tools) -> Binary:
    return assemble_as(plain, tools.ptxas, found.text, tools.options, tools.limit_s)
