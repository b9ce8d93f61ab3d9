"""`tl.inline_asm_elementwise`: blocks are packed into registers, and the PTX is executed on all of them at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.flow.lanes import broadcast_all
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.rounding import decode, encode
from bragg.debug.ptx.instructions import Registers
from bragg.debug.ptx.text import constraints as parsed_constraints
from bragg.debug.ptx.text import statements
from bragg.debug.state import is_wide, machine
from bragg.debug.values import UNDEFINED, Pointer, Tensor, lift_array
from bragg.model.table import Array


def inline_asm_elementwise(
    asm: str, constraints: str, args: Sequence[Any], dtype: Any, is_pure: bool, pack: int
) -> Any:
    """Execute PTX for each element, or each `pack` neighbours, of blocks.

    Args:
        asm: PTX; `$0` and on are the registers of results, then of operands.
        constraints: One for each register.
        args: Blocks that are broadcast together; elements of less than 32 bits share a register.
        dtype: Of the result, or a sequence for several results.
        is_pure: No matter here: every text is executed.
        pack: Elements that one execution handles.

    Raises:
        KernelFault: Operands and constraints do not fit together.
        Unsupported: An instruction that the engine does not know, by name.
    """
    del is_pure
    results = (dtype,) if isinstance(dtype, DType) else tuple(dtype)
    addressed = [cast(one, DTYPES["int64"]) if isinstance(one, Pointer) else one for one in args]
    blocks = broadcast_all(_as_registers(addressed, constraints)) if addressed else []
    shape = blocks[0].shape if blocks else ()
    lanes = math.prod(shape)
    if lanes % pack:
        raise KernelFault(f"blocks of {lanes} elements cannot be handled {pack} at a time")
    programs = len(machine().rows)
    held = [register for block in blocks for register in _packed(block, programs, pack)]
    wanted = sum(pack // _elements_in_register(one, pack) for one in results)
    registers = _filled(constraints, held, wanted, pack, programs * lanes // pack)
    for statement in statements(asm):
        registers.execute(statement)
    taint = _taint(blocks, programs, pack)
    unpacked, first = [], 0
    for one in results:
        count = pack // _elements_in_register(one, pack)
        read = [registers.result(f"${first + k}") for k in range(count)]
        whole = _unpacked([bits for bits, _ in read], one, pack, (programs, *shape), taint)
        is_whole = all(is_written for _, is_written in read)
        unpacked.append(whole if is_whole else whole.tainted(np.ones(1, bool), UNDEFINED))
        first += count
    if is_wide():
        unpacked = [_widened(one) for one in unpacked]
    return unpacked[0] if isinstance(dtype, DType) else tuple(unpacked)


def _filled(constraints: str, held: Sequence[Array], wanted: int, pack: int, executions: int) -> Registers:
    """Registers that hold the operands.

    Raises:
        KernelFault: The constraints declare other numbers of registers than the blocks need.
    """
    declared = parsed_constraints(constraints)
    if declared.outputs != wanted or len(declared.inputs) != len(held):
        raise KernelFault(
            f"the constraints declare {declared.outputs} results and {len(declared.inputs)} operands,"
            f" and {pack} elements at a time need {wanted} and {len(held)}"
        )
    registers = Registers(executions)
    for place, (tied, bits) in enumerate(zip(declared.inputs, held, strict=True)):
        registers.write(f"${place + declared.outputs}", bits)
        if tied is not None:
            registers.write(f"${tied}", bits)
    return registers


def _as_registers(blocks: Sequence[Any], constraints: str) -> list[Any]:
    """Blocks of float64 in the place of others, as the text takes them.

    Raises:
        Unsupported: It takes others than float32.
    """
    tensors = list(map(as_tensor, blocks))
    if not is_wide() or not any(one.dtype.is_floating() for one in tensors):
        return tensors
    if set(map(str.strip, constraints.split(","))) & {"r", "h", "d"}:
        raise Unsupported("inline assembly of these floats takes no others")
    return [_narrowed(one) if one.dtype.is_floating() else one for one in tensors]


def _narrowed(block: Tensor) -> Tensor:
    return Tensor(block.data.astype(np.float32), DTYPES["fp32"], taint=block.taint)


def _widened(block: Tensor) -> Tensor:
    if not block.dtype.is_floating():
        return block
    return Tensor(block.data.astype(np.float64), DTYPES["fp64"], taint=block.taint)


def _elements_in_register(dtype: DType, pack: int) -> int:
    return min(max(32 // (dtype.size_bytes * 8), 1), pack)


def _packed(block: Tensor, programs: int, pack: int) -> list[Array]:
    """uint64 [executions] for each register: elements side by side, the first in the lowest bits."""
    bits = encode(np.ascontiguousarray(np.broadcast_to(block.data, (programs, *block.shape))), block.dtype)
    width = block.dtype.size_bytes * 8
    codes = np.ascontiguousarray(bits).view(f"u{width // 8}").astype(np.uint64).reshape(-1, pack)
    per_register = _elements_in_register(block.dtype, pack)
    registers = []
    for start in range(0, pack, per_register):
        register = np.zeros(len(codes), np.uint64)
        for k in range(per_register):
            register |= codes[:, start + k] << np.uint64(width * k)
        registers.append(register)
    return registers


def _unpacked(registers: Sequence[Array], dtype: DType, pack: int, full: tuple[int, ...], taint: Any) -> Tensor:
    width = dtype.size_bytes * 8
    per_register = _elements_in_register(dtype, pack)
    codes = np.empty((len(registers[0]), pack), f"u{width // 8}")
    for k in range(pack):
        register = registers[k // per_register] >> np.uint64(width * (k % per_register))
        codes[:, k] = register.astype(codes.dtype)
    values = decode(codes.reshape(full).view(dtype.storage), dtype)
    return Tensor(values.astype(dtype.carrier, copy=False), dtype, taint=None if taint is None else taint.reshape(full))


def _taint(blocks: Sequence[Tensor], programs: int, pack: int) -> Array | None:
    """An undefined element spoils all that are handled with it."""
    total: Any = None
    for block in blocks:
        if block.taint is not None:
            full = (programs, *block.shape)
            own = np.broadcast_to(lift_array(block.taint, len(full)), full).reshape(-1, pack)
            total = own if total is None else total | own
    if total is None:
        return None
    return np.repeat(np.bitwise_or.reduce(total, axis=1), pack)
