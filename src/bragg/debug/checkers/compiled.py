"""Shared memory accesses of a kernel, as Triton's compiler makes them for a GPU that need not be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bragg.debug.host.launch import Launch
from bragg.debug.values import Pointer, Tensor

__all__ = ["SharedAccess", "gpu_dialect", "shared_accesses"]

# Hopper: compute capability 9.0, 32 lanes in a warp.
_TARGET = ("cuda", 90, 32)
_ALIGNMENT = 16


def gpu_dialect(launch: Launch) -> str:
    """The launch's kernel in Triton's GPU dialect, specialised to its arguments as Triton does.

    Raises:
        Exception: Whatever Triton's compiler raises.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile
    from triton.runtime.jit import JITFunction

    signature, constants, attributes = {}, {}, {}
    for number, (name, value) in enumerate(launch.values.items()):
        kind = None if name in launch.constants else _type_name(value)
        if kind is None or (kind.startswith("i") and launch.arguments[name] == 1):
            signature[name], constants[name] = "constexpr", launch.arguments[name]
            continue
        signature[name] = kind
        if _is_aligned(value):
            attributes[(number,)] = [["tt.divisibility", _ALIGNMENT]]
    options = {name: launch.options[name] for name in ("num_warps", "num_stages") if name in launch.options}
    source = ASTSource(JITFunction(launch.program.function), signature, constants, attributes)
    return str(compile(source, target=GPUTarget(*_TARGET), options=options).asm["ttgir"])


def _type_name(value: Any) -> str | None:
    if isinstance(value, Pointer):
        return f"*{_short(value.element.name)}"
    return _short(value.dtype.name) if isinstance(value, Tensor) else None


def _short(name: str) -> str:
    return re.sub(r"^(u?)int", lambda found: "u" if found[1] else "i", name)


def _is_aligned(value: Any) -> bool:
    if isinstance(value, Pointer):
        return value.buffer.address % _ALIGNMENT == 0
    return bool(value.dtype.is_int() and value.dtype.bits > 1 and value.known_bounds()[0] % _ALIGNMENT == 0)


@dataclass(frozen=True)
class SharedAccess:
    """A block that goes into or out of shared memory.

    Attributes:
        kind: `read` or `write`.
        shape: Of the block.
        element_bits: Of its elements.
        registers: Layout in registers.
        memory: Layout in shared memory.
        file: Where the line is.
        line: The line.
    """

    kind: str
    shape: tuple[int, ...]
    element_bits: int
    registers: str
    memory: str
    file: str
    line: int


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
    places = _Places(text)
    for line in text.splitlines():
        operation = re.search(r"\b(ttg\.\w+)", line)
        kind = _OPERATIONS.get(operation[1]) if operation else None
        block, memory = _BLOCK.search(line), _MEMORY.search(line.partition(" : ")[2])
        if kind is None or block is None or memory is None:
            continue
        file, number = places.of(line)
        shape = tuple(int(extent) for extent in block[1].split("x")[:-1])
        registers = _resolved(_balanced(block[4]), aliases)
        yield SharedAccess(
            kind, shape, _bits(block[2] or block[3]), registers, aliases.get(memory[1], ""), file, number
        )


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


class _Places:
    """Source lines of a module's operations."""

    def __init__(self, text: str) -> None:
        self._named = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))

    def of(self, line: str) -> tuple[str, int]:
        """File and line of an operation; an empty name when the text has none."""
        found = re.search(r"loc\((#loc\d*)\)\s*$", line)
        return self._follow(found[1]) if found else ("", 0)

    def _follow(self, name: str) -> tuple[str, int]:
        text = self._named.get(name, "")
        place = re.match(r'"(.+)":(\d+):\d+', text)
        if place:
            return place[1], int(place[2])
        inner = re.search(r"#loc\d+", text)
        return self._follow(inner[0]) if inner else ("", 0)
