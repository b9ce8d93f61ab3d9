"""Instructions of PTX on bits: logic, shifts, fields, permutations, counts.

Each function takes the operands as uint64 arrays, the width of the type and the modifiers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.ptx.numbers import number_type
from bragg.model.table import Array


def _shifted(values: list[Array], width: int, modifiers: list[str], left: bool) -> Array:
    """Shifts clamp their amount; `shr` of a signed type keeps the sign."""
    mask = np.uint64((1 << width) - 1)
    amount = np.minimum(values[1] & np.uint64(0xFFFFFFFF), np.uint64(width))
    if left:
        shifted = np.where(amount >= 64, np.uint64(0), values[0] << np.minimum(amount, np.uint64(63)))
        return np.asarray(shifted & mask)
    if modifiers[-1].startswith("s"):
        signed = number_type(modifiers[-1]).split(values[0])[0]
        return np.asarray(
            (signed >> np.minimum(amount, np.uint64(width - 1)).astype(np.int64)).astype(np.uint64) & mask
        )
    whole = values[0] & mask
    return np.asarray(np.where(amount >= 64, np.uint64(0), whole >> np.minimum(amount, np.uint64(63))))


def _lop3(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """Any function of three bits, by its table."""
    del modifiers
    a, b, c = values[:3]
    table = int(values[3][0])
    mask = np.uint64((1 << width) - 1)
    total = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            total = total | (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return np.asarray(total & mask)


def _permuted(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`prmt`: four bytes chosen from eight; a selector's highest bit spreads the sign instead."""
    del width
    if modifiers != ["b32"]:
        raise Unsupported(f"prmt.{'.'.join(modifiers)} is not supported", hint="Use prmt.b32 with a selector")
    low, high = values[0] & np.uint64(0xFFFFFFFF), values[1] & np.uint64(0xFFFFFFFF)
    both = low | high << np.uint64(32)
    total = np.zeros_like(both)
    for k in range(4):
        selector = values[2] >> np.uint64(4 * k) & np.uint64(0xF)
        byte = both >> ((selector & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)
        spread = np.where(byte >= 128, np.uint64(0xFF), np.uint64(0))
        total = total | np.where(selector >= 8, spread, byte) << np.uint64(8 * k)
    return np.asarray(total)


def _extracted(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`bfe`: some bits from a place on, with the sign where the type has one."""
    start, count = (value & np.uint64(0xFF) for value in values[1:3])
    signed = modifiers[-1].startswith("s")
    whole = (number_type(modifiers[-1]).split(values[0])[0]).astype(np.int64)
    moved = (whole >> np.minimum(start, np.uint64(width - 1)).astype(np.int64)).astype(np.uint64)
    count = np.minimum(count, np.uint64(width))
    mask = np.where(count >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1))
    field = moved & mask
    if signed:
        last = np.uint64(1) << np.maximum(count, np.uint64(1)) - np.uint64(1)
        field = np.where((field & last != 0) & (count > 0), field | ~mask, field)
    return np.asarray(field & np.uint64((1 << width) - 1))


def _inserted(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`bfi`: some bits of the first operand put into the second."""
    del modifiers
    start, count = (value & np.uint64(0xFF) for value in values[2:4])
    ones = np.where(count >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1))
    mask = np.where(start >= width, np.uint64(0), ones << np.minimum(start, np.uint64(63)))
    field = values[0] << np.minimum(start, np.uint64(63))
    return np.asarray((field & mask | values[1] & ~mask) & np.uint64((1 << width) - 1))


def _funnel(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`shf`: 32 of the 64 bits of two registers."""
    del width
    both = values[0] & np.uint64(0xFFFFFFFF) | values[1] << np.uint64(32)
    amount = values[2] & np.uint64(0xFFFFFFFF)
    amount = amount & np.uint64(31) if "wrap" in modifiers else np.minimum(amount, np.uint64(32))
    if modifiers[0] == "r":
        return np.asarray(both >> amount & np.uint64(0xFFFFFFFF))
    return np.asarray(both >> (np.uint64(32) - amount) & np.uint64(0xFFFFFFFF))


def _bit_counts(values: Array) -> Array:
    """Ones in each uint64."""
    as_bytes = np.ascontiguousarray(values).view(np.uint8)
    result: Array = np.unpackbits(as_bytes).reshape(len(values), 64).sum(axis=1).astype(np.uint64)
    return result


def _leading_zeros(values: Array, width: int) -> Array:
    smeared = values & np.uint64((1 << width) - 1)
    for step in (1, 2, 4, 8, 16, 32):
        smeared = smeared | smeared >> np.uint64(step)
    return np.asarray(np.uint64(width) - _bit_counts(smeared))


def _found(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`bfind`: place of the highest one, or of the highest bit that is not the sign."""
    mask = np.uint64((1 << width) - 1)
    whole = values[0] & mask
    if modifiers[-1].startswith("s"):
        whole = np.where(number_type(modifiers[-1]).split(whole)[0] < 0, ~whole & mask, whole)
    zeros = _leading_zeros(whole, width)
    place = zeros if "shiftamt" in modifiers else np.uint64(width - 1) - zeros
    return np.where(whole == 0, np.uint64(0xFFFFFFFF), place)


def _reversed(values: list[Array], width: int, modifiers: list[str]) -> Array:
    del modifiers
    total = np.zeros_like(values[0])
    for k in range(width):
        total |= (values[0] >> np.uint64(k) & np.uint64(1)) << np.uint64(width - 1 - k)
    return total


def _nth(values: list[Array], width: int, modifiers: list[str]) -> Array:
    """`fns`: place of the n-th one from a place on, downwards for a negative n; n = 0 asks for that place alone."""
    del modifiers
    ones, start, count = values[0], values[1] & np.uint64(0xFFFFFFFF), number_type("s32").split(values[2])[0]
    left, found = np.maximum(np.abs(count), 1), np.full_like(ones, 0xFFFFFFFF)
    for step in range(width):
        place = start.astype(np.int64) + np.sign(count) * step
        is_inside = (place >= 0) & (place < width) & ((count != 0) | (step == 0))
        is_one = is_inside & ((ones >> np.clip(place, 0, width - 1).astype(np.uint64) & np.uint64(1)) != 0)
        left = left - is_one
        found = np.where(is_one & (left == 0), place.astype(np.uint64), found)
    return found


def _masked(function: Callable[..., Array]) -> Callable[[list[Array], int, list[str]], Array]:
    return lambda values, width, modifiers: function(*values) & np.uint64((1 << width) - 1)


BITWISE: dict[str, Callable[[list[Array], int, list[str]], Array]] = {
    "and": _masked(np.bitwise_and),
    "or": _masked(np.bitwise_or),
    "xor": _masked(np.bitwise_xor),
    "not": _masked(np.bitwise_not),
    "cnot": lambda values, width, modifiers: (values[0] == 0).astype(np.uint64),
    "shl": lambda values, width, modifiers: _shifted(values, width, modifiers, left=True),
    "shr": lambda values, width, modifiers: _shifted(values, width, modifiers, left=False),
    "lop3": _lop3,
    "prmt": _permuted,
    "bfe": _extracted,
    "bfi": _inserted,
    "shf": _funnel,
    "popc": lambda values, width, modifiers: _bit_counts(values[0] & np.uint64((1 << width) - 1)),
    "clz": lambda values, width, modifiers: _leading_zeros(values[0], width),
    "bfind": _found,
    "brev": _reversed,
    "fns": _nth,
}
