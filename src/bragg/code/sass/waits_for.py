"""Which instruction a warp waits for: the load or the like that fills a register that it is about to use.

A GPU stalls where a result is used, not where it is made. The way back leads over all paths of the code, with loops,
to the nearest instructions that write what is read; only those whose results come late in the way of the stall count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from bragg.code.sass.listing import Instruction
from bragg.code.sass.registers import Effects, effects_of

# By stall reason: opcodes whose results it is that come late. Source: meanings of the reasons in `stall_reasons`.
_LATE = {
    "long_scoreboard": re.compile(r"LDG|LD\.|LD$|LDL|TEX|TLD|SULD|ATOM|RED|SYNCS|LDGDEPBAR|LDTM"),
    "short_scoreboard": re.compile(
        r"LDS|LDSM|MUFU|SHFL|ATOMS|I2F|F2I|F2F|S2R|S2UR|LDC|POPC|R2UR|MOVM|REDUX|SYNCS|MATCH|FLO"
    ),
    "gmma": re.compile(r"[HIQ]GMMA"),
    "warpgroup_arrive": re.compile(r"[HIQ]GMMA"),
    "wait": re.compile(r"HMMA|IMMA|QMMA|DMMA"),
    "math_pipe_throttle": re.compile(r"HMMA|IMMA|QMMA|DMMA"),
}
# Waits for a group of copies or products: these fill no register that is read.
_GROUPS = ((re.compile(r"DEPBAR"), re.compile(r"LDGSTS")), (re.compile(r"WARPGROUP\.DEPBAR"), re.compile(r"[HIQ]GMMA")))
_ENDS = re.compile(r"EXIT|RET|BRA|BRX|JMP|KILL")
_MOST_STEPS = 20_000


class Waits:
    """The way back from each instruction of a function.

    Args:
        code: Its instructions, by offset.
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._code = code
        self._index = {each.offset_bytes: number for number, each in enumerate(code)}
        self._known: dict[tuple[int, str], tuple[int, ...]] = {}

    def producers(self, offset_bytes: int, reason: str) -> tuple[int, ...]:
        """Offsets of the instructions that one is waiting for; none: it is not known.

        Args:
            offset_bytes: Of the instruction that waits.
            reason: Name of its stall reason, without the vendor's prefix.
        """
        key = offset_bytes, reason
        if key not in self._known:
            at = self._index.get(offset_bytes)
            found = () if at is None else tuple(sorted(self._search(at, reason)))
            self._known[key] = tuple(self._code[number].offset_bytes for number in found)
        return self._known[key]

    @cached_property
    def _effects(self) -> list[Effects]:
        return [effects_of(each.text) for each in self._code]

    @cached_property
    def _before(self) -> list[list[int]]:
        """The instructions from which control may come to each."""
        before: list[list[int]] = [[] for _ in self._code]
        for number, effects in enumerate(self._effects):
            falls_through = effects.is_guarded or not _ENDS.match(effects.opcode)
            if falls_through and number + 1 < len(self._code):
                before[number + 1].append(number)
            if effects.target in self._index:
                before[self._index[effects.target]].append(number)
        return before

    def _search(self, at: int, reason: str) -> set[int]:
        own = self._effects[at]
        for waits, members in _GROUPS:
            if waits.match(own.opcode):
                return self._nearest(at, members)
        late = _LATE.get(reason)
        return set(self._writers(at, own.reads, late)) if late else set()

    def _writers(self, at: int, reads: frozenset[str], late: re.Pattern[str]) -> Iterator[int]:
        """The nearest instructions on each path that write what is read, if they are late."""
        pending = [(number, reads) for number in self._before[at]]
        seen: dict[int, set[str]] = {}
        steps = 0
        while pending and steps < _MOST_STEPS:
            steps += 1
            number, wanted = pending.pop()
            wanted = wanted - seen.get(number, set())
            if not wanted:
                continue
            seen.setdefault(number, set()).update(wanted)
            effects = self._effects[number]
            written = wanted & effects.writes
            if written and late.match(effects.opcode):
                yield number
            left = wanted if effects.is_guarded else wanted - written
            if left:
                pending += [(before, left) for before in self._before[number]]

    def _nearest(self, at: int, wanted: re.Pattern[str]) -> set[int]:
        """The nearest instructions of a kind on each path."""
        found: set[int] = set()
        pending, seen = list(self._before[at]), set(self._before[at])
        while pending:
            number = pending.pop()
            if wanted.match(self._effects[number].opcode):
                found.add(number)
                continue
            more = [each for each in self._before[number] if each not in seen]
            seen.update(more)
            pending += more
        return found
