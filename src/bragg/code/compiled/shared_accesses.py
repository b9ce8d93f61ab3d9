"""Shared memory accesses of a kernel, from the text of its module in Triton's GPU dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bragg.code.compiled.shared_layouts import conflict_ways, held, places

CHANGE_OF_OPERANDS = (
    "keep the tensor so that the dimension that the product sums over is contiguous, or use operands of 16 bits, "
    "which tensor cores read in both orders"
)
"""What avoids conflicts of the operands of a product."""


def ways_of(access: SharedAccess) -> int | None:
    """How many lanes meet in one bank; None: the layouts are not ones whose addresses are known.

    Conversions between register layouts, and the operands of tensor cores, are laid out by the compiler itself.
    """
    size = access.element_bits // 8
    indices = held(access.registers, access.shape)
    if indices is None or not size:
        return None
    addresses = places(access.memory, indices, access.shape, size)
    return None if addresses is None else conflict_ways(addresses, size)


@dataclass(frozen=True)
class SharedAccess:
    """A block that goes into or out of shared memory.

    Attributes:
        kind: `read` or `write`.
        shape: Of the block.
        element_bits: Of its elements.
        registers: Layout in registers.
        memory: Layout in shared memory.
        row: Line of the text, from 0; `places_of_mlir` tells where it comes from.
    """

    kind: str
    shape: tuple[int, ...]
    element_bits: int
    registers: str
    memory: str
    row: int


_OPERATIONS = {
    "ttg.local_load": "read",
    "ttg.local_store": "write",
    "ttg.local_alloc": "write",
    "ttg.async_copy_global_to_local": "write",
}
_BLOCK = re.compile(r"tensor<((?:\d+x)+)(?:!tt\.ptr<([\w]+)>|([\w]+)), (.+)")
_MEMORY = re.compile(r"(?:memdesc)?<(?:\d+x)+[\w]+, (#\w+), #\w+")


def shared_accesses(text: str) -> Iterator[SharedAccess]:
    """The accesses of a module in the GPU dialect whose block and layouts its text shows."""
    aliases = dict(re.findall(r"^(#\w+) = (#ttg\..+)$", text, re.MULTILINE))
    for row, line in enumerate(text.splitlines()):
        operation = re.search(r"\b(ttg\.\w+)", line)
        kind = _OPERATIONS.get(operation[1]) if operation else None
        block, memory = _BLOCK.search(line), _MEMORY.search(line.partition(" : ")[2])
        if kind is None or block is None or memory is None:
            continue
        shape = tuple(int(extent) for extent in block[1].split("x")[:-1])
        registers = _resolved(_balanced(block[4]), aliases)
        yield SharedAccess(kind, shape, _bits(block[2] or block[3]), registers, aliases.get(memory[1], ""), row)


def _balanced(text: str) -> str:
    """The text up to the bracket that closes what was opened before it."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if depth < 0:
            return text[:position]
    return text


def _resolved(layout: str, aliases: dict[str, str]) -> str:
    return re.sub(r"#(?!ttg\.)\w+", lambda found: aliases.get(found[0], found[0]), layout)


def _bits(element: str) -> int:
    found = re.search(r"\d+", element)
    return int(found[0]) if found else 0
