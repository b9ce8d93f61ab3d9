"""Nodes below kernels that stand for lines and instructions; `source_lines` draws their shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bragg.code.sass.flops import InstructionFlops, flops_of
from bragg.code.sass.listing import Instruction
from bragg.model import Profile
from bragg.model.ids import NodeId

_OFFSET = re.compile(r"\+0x([0-9a-f]+)$")


def line_nodes(profile: Profile, kernels: Sequence[NodeId]) -> Iterator[tuple[NodeId, list[NodeId]]]:
    """The nodes below kernels, and the kernels themselves, with the path of line nodes that leads to each."""
    pending: list[tuple[NodeId, list[NodeId]]] = [(node, []) for node in kernels]
    while pending:
        node, path = pending.pop()
        yield node, path
        pending += [(child, [*path, child]) for child in profile.tree.children(node).tolist()]


def offset_bytes(profile: Profile, node: NodeId) -> int | None:
    """Of an instruction, from the beginning of the kernel's code; None: the node is not an instruction."""
    match = _OFFSET.match(profile.tree.frames.name[profile.tree.frame[node]])
    return int(match[1], 16) if match else None


def flops_by_offset(instructions: Mapping[int, Instruction]) -> dict[int, InstructionFlops]:
    """By offset, of instructions that make some; empty: the text of one does not say how many."""
    told = {offset: flops_of(each.text) for offset, each in instructions.items()}
    return {} if None in told.values() else {offset: each for offset, each in told.items() if each and any(each)}
