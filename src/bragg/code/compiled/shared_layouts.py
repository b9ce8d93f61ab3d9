"""Layouts of Triton's GPU dialect: which lane holds which element, and where elements lie in shared memory.

Sources: the attributes' descriptions in Triton's TritonGPUAttrDefs.td; CUDA C++ Programming Guide, "Shared Memory".
"""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np

from bragg.model.table import Array

_LANES = 32
_BANKS = 32
_BANK_BYTES = 4
_WIDEST_BYTES = 16


def held(layout: str, shape: tuple[int, ...]) -> Array | None:
    """Indices of the elements that each lane of a warp holds: int [registers, 32, rank]; None: not a known layout."""
    if layout.startswith("#ttg.blocked<"):
        return _blocked(layout, shape)
    if layout.startswith("#ttg.linear<"):
        return _linear(layout)
    inner = re.match(r"#ttg\.(dot_op|slice)<\{(opIdx|dim) = (\d), parent = (#ttg\.blocked<.*?\}>)", layout)
    if inner is None:
        return None
    number, parent = int(inner[3]), inner[4]
    return _operand(parent, shape, number) if inner[1] == "dot_op" else _slice(parent, shape, number)


def _numbers(layout: str, name: str) -> tuple[int, ...]:
    found = re.search(rf"\b{name} = \[([\d, ]*)\]", layout)
    return tuple(int(number) for number in found[1].split(",")) if found and found[1] else ()


def _blocked(layout: str, shape: tuple[int, ...]) -> Array:
    size, threads = _numbers(layout, "sizePerThread"), _numbers(layout, "threadsPerWarp")
    warps, order = _numbers(layout, "warpsPerCTA"), _numbers(layout, "order")
    tile = [a * b * c for a, b, c in zip(size, threads, warps, strict=True)]
    repeats = [max(extent // part, 1) for extent, part in zip(shape, tile, strict=True)]
    lanes = _counted(threads, order) * np.array(size)
    elements = _counted(size, order)
    starts = _counted(tuple(repeats), order) * np.array(tile)
    registers = (starts[:, None] + elements[None]).reshape(-1, len(shape))
    indices: Array = (registers[:, None] + lanes[None]) % np.array(shape)
    return indices


def _counted(extents: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """All indices below extents, the first axis of the order fastest: int [count, rank]."""
    slowest_first = [range(extents[axis]) for axis in reversed(order)]
    counted = np.array(list(product(*slowest_first)), np.int64).reshape(-1, len(order))
    found = np.empty_like(counted)
    found[:, list(reversed(order))] = counted
    return found


def _linear(layout: str) -> Array:
    parts = {name: _bases(layout, name) for name in ("register", "lane")}
    rank = max(bases.shape[1] for bases in parts.values())
    lanes, registers = (_combined(parts[name], rank) for name in ("lane", "register"))
    indices: Array = registers[:, None] ^ lanes[None]
    return indices


def _bases(layout: str, name: str) -> Array:
    found = re.search(rf"\b{name} = \[((?:\[[\d, ]*\](?:, )?)*)\]", layout)
    rows = re.findall(r"\[([\d, ]*)\]", found[1]) if found else []
    return np.array([[int(number) for number in row.split(",")] for row in rows], np.int64).reshape(len(rows), -1)


def _combined(bases: Array, rank: int) -> Array:
    values = np.zeros((1, rank), np.int64)
    for base in bases:
        values = np.concatenate([values, values ^ base])
    return values


def _operand(parent: str, shape: tuple[int, ...], number: int) -> Array:
    """An operand of a product without tensor cores: each lane holds whole rows or columns."""
    along = len(shape) - 1 - number
    whole = _blocked(parent, tuple(_tile(parent)[k] if k == along else n for k, n in enumerate(shape)))
    first = whole[(whole[..., along] == whole[:1, :, along]).all(axis=1)]
    repeated = np.repeat(first[:, None], shape[along], axis=1)
    repeated[..., along] = np.arange(shape[along])[None, :, None]
    return repeated.reshape(-1, *first.shape[1:])


def _tile(parent: str) -> list[int]:
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    return [math.prod(sizes) for sizes in zip(*(_numbers(parent, name) for name in names), strict=True)]


def _slice(parent: str, shape: tuple[int, ...], axis: int) -> Array:
    """What is left of a layout when an axis is taken away."""
    whole = _blocked(parent, (*shape[:axis], _tile(parent)[axis], *shape[axis:]))
    return np.delete(whole, axis, axis=2)


def places(layout: str, indices: Array, shape: tuple[int, ...], element_bytes: int) -> Array | None:
    """Bytes from the start of a block in shared memory to elements: int [registers, 32]; None: not a known layout."""
    if layout.startswith("#ttg.swizzled_shared<"):
        vector, per_phase, phases = (_number(layout, name) for name in ("vec", "perPhase", "maxPhase"))
        order = _numbers(layout, "order")
        return _swizzled(indices, shape, order, vector, per_phase, phases) * element_bytes
    if not layout.startswith("#ttg.nvmma_shared<") or len(shape) != 2:
        return None
    width = _number(layout, "swizzlingByteWidth")
    order = (0, 1) if "transposed = true" in layout else (1, 0)
    if not width:
        return _swizzled(indices, shape, order, 1, 1, 1) * element_bytes
    # Columns of 32, 64 or 128 bytes lie one after another; chunks of 16 bytes are exchanged within them.
    columns = width // element_bytes
    rows = shape[order[1]]
    part = indices.copy()
    part[..., order[0]] %= columns
    inner = [0, 0]
    inner[order[0]], inner[order[1]] = columns, rows
    inside = _swizzled(part, tuple(inner), order, 16 // element_bytes, 128 // width, width // 16)
    result: Array = (inside + indices[..., order[0]] // columns * columns * rows) * element_bytes
    return result


def _number(layout: str, name: str) -> int:
    found = re.search(rf"\b{name} = (\d+)", layout)
    return int(found[1]) if found else 0


def _swizzled(
    indices: Array, shape: tuple[int, ...], order: tuple[int, ...], vector: int, per_phase: int, phases: int
) -> Array:
    column = indices[..., order[0]]
    if len(order) > 1:
        phase = indices[..., order[1]] // per_phase % phases
        column = (column // vector ^ phase) * vector + column % vector
    offset, stride = column, shape[order[0]]
    for axis in order[1:]:
        offset = offset + indices[..., axis] * stride
        stride *= shape[axis]
    return offset


def conflict_ways(addresses: Array, element_bytes: int) -> int:
    """Most words of one bank that lanes of a warp ask for at once; 1: no conflict.

    Args:
        addresses: In bytes, int64 [registers, 32].
        element_bytes: Of each register.
    """
    addresses = addresses[np.argsort(addresses[:, 0], kind="stable")]
    width = _vector(addresses, element_bytes)
    together = _LANES * _BANK_BYTES // max(width * element_bytes, _BANK_BYTES)
    most = 1
    for group in np.unique(addresses[::width], axis=0):
        for start in range(0, _LANES, together):
            lanes = group[start : start + together, None]
            words = np.unique((lanes + np.arange(0, width * element_bytes, element_bytes)) // _BANK_BYTES)
            most = max(most, int(np.bincount(words % _BANKS).max()))
    return most


def _vector(addresses: Array, element_bytes: int) -> int:
    """Registers that one instruction moves: neighbours in memory for every lane."""
    width = _WIDEST_BYTES // element_bytes
    while width > 1:
        if len(addresses) % width == 0:
            groups = addresses.reshape(-1, width, _LANES)
            is_run = (np.diff(groups, axis=1) == element_bytes).all()
            if is_run and (groups[:, 0] % (width * element_bytes) == 0).all():
                return width
        width //= 2
    return 1
