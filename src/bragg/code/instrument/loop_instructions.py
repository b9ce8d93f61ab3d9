"""The instructions of a kernel's loops that its speed depends on: matrix products, copies, and waits for both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bragg.code.sass.disassembler import Listing
from bragg.code.sass.registers import effects_of

# Products of Ampere, Hopper and Blackwell; tensor copies, copies to shared memory.
_WORK = re.compile(r"HMMA|IMMA|HGMMA|IGMMA|QGMMA|UTCHMMA|UTCQMMA|UTMALDG|UTMASTG|LDGSTS|LDSM")
WAITS = re.compile(r"DEPBAR|WARPGROUP")
"""Opcodes that wait; clocks may add some, which costs what the launches show."""

_ENDS = re.compile(r"EXIT|RET|BRA|BRX|JMP|KILL")


def loop_counts(listing: Listing, function: str) -> Counter[str]:
    """How often each of these instructions stands in a loop of a function.

    Args:
        listing: Of its cubin.
        function: Its symbol.
    """
    code = listing.get(function, {})
    effects = [effects_of(text) for text in code.values()]
    number_of = {offset: number for number, offset in enumerate(code)}
    after: list[list[int]] = []
    for number, each in enumerate(effects):
        falls_through = each.is_guarded or not _ENDS.match(each.opcode)
        next_one = [number + 1] if falls_through and number + 1 < len(effects) else []
        after.append(next_one + ([number_of[each.target]] if each.target in number_of else []))
    opcodes = (effects[number].opcode.partition(".")[0] for number in _in_loops(after))
    return Counter(each for each in opcodes if _WORK.fullmatch(each) or WAITS.fullmatch(each))


def changes(plain: Mapping[str, int], clocked: Mapping[str, int], copies: int) -> dict[str, tuple[int, int]]:
    """Counts that differ, by opcode: without clocks and with them.

    Args:
        plain: Counts of the kernel as it was.
        clocked: With clocks.
        copies: How often its code stands there then.
    """
    both = {opcode: (plain.get(opcode, 0) * copies, clocked.get(opcode, 0)) for opcode in sorted({*plain, *clocked})}
    return {opcode: counts for opcode, counts in both.items() if counts[0] != counts[1]}


def _in_loops(after: Sequence[Sequence[int]]) -> list[int]:
    """Nodes that can be reached from themselves: those of components of several, by Kosaraju's two searches."""
    before: list[list[int]] = [[] for _ in after]
    for node, successors in enumerate(after):
        for each in successors:
            before[each].append(node)
    component = [-1] * len(after)
    for root in reversed(_finished(after)):
        pending = [root]
        while pending:
            node = pending.pop()
            if component[node] < 0:
                component[node] = root
                pending += before[node]
    size = Counter(component)
    return [node for node, root in enumerate(component) if size[root] > 1 or node in after[node]]


def _finished(after: Sequence[Sequence[int]]) -> list[int]:
    """Nodes in the order in which a search in depth leaves them."""
    order: list[int] = []
    seen = [False] * len(after)
    for start in range(len(after)):
        pending = [(start, False)]
        while pending:
            node, is_done = pending.pop()
            if is_done:
                order.append(node)
            elif not seen[node]:
                seen[node] = True
                pending += [(node, True), *((each, False) for each in after[node])]
    return order
