"""How many floating-point operations an instruction of NVIDIA's machine code makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bragg.code.sass.instruction_kinds import INSTRUCTION

# Added to zero: a constant or a conversion that is put into a register.
_MOVES = "-RZ,"
# Comparisons and functions of MUFU are none, as in Nsight Compute.
_OF_THREAD = {
    "FADD": 1,
    "FMUL": 1,
    "FFMA": 2,
    "DADD": 1,
    "DMUL": 1,
    "DFMA": 2,
    "FADD2": 2,
    "FMUL2": 2,
    "FFMA2": 4,
    "HADD2": 2,
    "HMUL2": 2,
    "HFMA2": 4,
}
_BITS = {"Q": 8, "H": 16, "F": 32, "D": 64}
_OF_WARP = re.compile(r"[DHQ]MMA")
_OF_WARP_GROUP = re.compile(r"[HQ]GMMA")
_WARPS_OF_GROUP = 4
# M, N and K are written without separators.
_SHAPES = {"884": 8 * 8 * 4, "1684": 16 * 8 * 4, "1688": 16 * 8 * 8, "16816": 16 * 8 * 16, "16832": 16 * 8 * 32}
# Blackwell's products have their shape in a descriptor.
_OF_DESCRIPTOR = re.compile(r"UTC\w*MMA")


class InstructionFlops(NamedTuple):
    """What one execution makes.

    Attributes:
        of_thread: For each thread that executes it.
        of_warp: For each warp.
        bits: Width of the numbers that are multiplied or added.
    """

    of_thread: int = 0
    of_warp: int = 0
    bits: int = 0

    def made(self, warps: int, threads: int) -> int:
        """By executions of warps, and of threads whose predicate let them."""
        return self.of_thread * threads + self.of_warp * warps


def flops_of(instruction: str) -> InstructionFlops | None:
    """The operations of an instruction; None: its text does not say how many.

    Args:
        instruction: As nvdisasm writes it.
    """
    found = INSTRUCTION.match(instruction)
    if found is None or _MOVES in instruction:
        return InstructionFlops()
    opcode, modifiers = found["name"], found["modifiers"].split(".")
    if _OF_WARP.fullmatch(opcode):
        size = next((_SHAPES[each] for each in modifiers if each in _SHAPES), None)
        return None if size is None or "SP" in modifiers else InstructionFlops(0, 2 * size, _bits(opcode, modifiers))
    if _OF_WARP_GROUP.fullmatch(opcode):
        shape = next((each for each in modifiers if each.count("x") == 2), None)
        if shape is None or "SP" in modifiers:
            return None
        m, n, k = map(int, shape.split("x"))
        return InstructionFlops(0, 2 * m * n * k // _WARPS_OF_GROUP, _bits(opcode, modifiers))
    if opcode in _OF_THREAD:
        return InstructionFlops(_OF_THREAD[opcode], 0, _BITS[opcode[0]])
    return None if _OF_DESCRIPTOR.fullmatch(opcode) else InstructionFlops()


def _bits(opcode: str, modifiers: Sequence[str]) -> int:
    return 32 if "TF32" in modifiers else _BITS[opcode[0]]
