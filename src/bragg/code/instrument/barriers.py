"""Which barrier in shared memory a statement of PTX uses: the number that its address has beside the stage's part."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

_T = TypeVar("_T")
_USE = re.compile(r"(?:mbarrier\.try_wait|mbarrier\.test_wait|tcgen05\.commit|cp\.async\.bulk)[^;]*\[(%\w+)\]")
_ADDED = re.compile(r"^\s*add\.s32\s+(%\w+), %\w+, (-?\d+);", re.MULTILINE)
_COPIED = re.compile(r"^\s*(?:mov\.b32|cvt\.u64\.u32)\s+(%\w+), (%\w+);", re.MULTILINE)


class Barriers:
    """Barriers of a kernel.

    A compiler keeps the barriers of a pipeline's stages beside each other: `base + 8 * stage + number`.

    Args:
        lines: Of its text.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        text = "\n".join(lines)
        self._numbers: Mapping[str, set[int]] = _sets((name, int(number)) for name, number in _ADDED.findall(text))
        self._sources: Mapping[str, set[str]] = _sets(_COPIED.findall(text))

    def used_by(self, code: str) -> int | None:
        """The number of the barrier that a statement waits for or lets arrive; None: none, or it is not known."""
        used = _USE.findall(code)
        found = self._of(used[-1], set()) if used else set()
        return found.pop() if len(found) == 1 else None

    def _of(self, register: str, seen: set[str]) -> set[int]:
        seen.add(register)
        found = set(self._numbers.get(register, ()))
        for source in self._sources.get(register, set()) - seen:
            found |= self._of(source, seen)
        return found


def _sets(pairs: Iterable[tuple[str, _T]]) -> Mapping[str, set[_T]]:
    found: dict[str, set[_T]] = defaultdict(set)
    for key, value in pairs:
        found[key].add(value)
    return found
