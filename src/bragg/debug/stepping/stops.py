"""Places where a debugger stops, and elements that are watched."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import FrameType

import numpy as np

from bragg.debug.checkers import Checker, LaunchFindings
from bragg.debug.findings import KernelFinding, program_ids
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.stepping.debugger import KernelDebugger, kernel_frame, open_at
from bragg.debug.stepping.origins import Origins
from bragg.errors import UsageError
from bragg.registry import CHECKERS

# Found when a kernel stores what an earlier line has made.
_FOUND_LATE = "nan-result"
_ELEMENT = re.compile(r"(\w+)\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]")


class StopOn:
    """Opens the debugger when one of some checkers finds something: at the line to blame.

    Args:
        rules: Names of the checkers.
        program: Only where this program shows it; None: wherever any does.

    Raises:
        UsageError: A name is not that of a checker.
    """

    def __init__(self, rules: Sequence[str], program: tuple[int, int, int] | None = None) -> None:
        for rule in rules:
            CHECKERS[rule]
        self._rules = rules
        self._program = program
        self._origins = Origins(self._open)

    @property
    def checkers(self) -> list[Checker]:
        """What has to watch launches for it."""
        return [self._origins.checker] if _FOUND_LATE in self._rules else []

    def __call__(self, finding: KernelFinding) -> None:
        """Stop here, or later where its values are made, if the user wants to."""
        program, frame = self._program, kernel_frame(sys._getframe())
        shows_it = program is None or program in (program_ids(number, finding.grid) for number in finding.programs)
        if finding.rule not in self._rules or not shows_it or frame is None:
            return
        print("\n".join(finding.lines()))
        if finding.rule == _FOUND_LATE and (finding.file, finding.line) != kernel_line():
            self._origins.add(finding)
        else:
            self._open(finding, frame)

    def _open(self, finding: KernelFinding, frame: FrameType) -> None:
        if self._program is None and finding.witness is not None:
            KernelDebugger.chosen = finding.witness.program
        open_at(frame)


@dataclass
class Watch:
    """Says who writes one element of a tensor, and knows who did last.

    Attributes:
        text: Name of the parameter and index: `out[3,5]`.
        tell: Takes what is said.
        last: The latest write, or why there is none.

    Raises:
        UsageError: The text is something else.
    """

    text: str
    tell: Callable[[str], None] = print
    last: str = "there was no launch"

    def __post_init__(self) -> None:
        match = _ELEMENT.fullmatch(self.text.strip())
        if match is None:
            raise UsageError(
                f"{self.text!r} is not an element of a tensor", hint="Give the parameter and an index: 'out[3,5]'"
            )
        self._is_known = False
        self._others: dict[str, None] = {}
        self._name, self._index = match[1], tuple(int(part) for part in match[2].split(","))

    @property
    def checker(self) -> Checker:
        """What watches launches."""
        return Checker(f"watch {self.text}", f"who writes {self.text}", False, self._watch)

    def _watch(self, record: LaunchFindings) -> Listeners:
        buffers = [buffer for buffer in record.launch.buffers if buffer.name == self._name]
        places = {id(buffer): _offset(buffer, self._index) for buffer in buffers}
        if places and not self._is_known:
            self._is_known, self.last = True, "nothing wrote it"
        elif not self._is_known:
            self._others.update(dict.fromkeys(buffer.name for buffer in record.launch.buffers))
            near = [f"did you mean {name}?" for name in get_close_matches(self._name, self._others, n=1, cutoff=0.5)]
            named = near[0] if near else f"tensors were {', '.join(self._others)}"
            self.last = f"no launch had such a parameter; {named}"

        def see(access: Access) -> None:
            offset = places.get(id(access.buffer))
            if access.kind != "load" and offset is not None:
                self._say(record, access, offset)

        return Listeners(access=[see] if places else [])

    def _say(self, record: LaunchFindings, access: Access, offset: int) -> None:
        file, line = kernel_line()
        for lane in np.flatnonzero(access.offsets == offset).tolist():
            place = program_ids(int(access.programs[lane]), record.launch.grid)
            content = "changed" if access.value is None else f"= {access.lane_values()[lane]}"
            code = linecache.getline(file, line).strip()
            self.last = f"{content} by program {place} of {record.launch.kernel} at {file}:{line}: {code}"
            self.tell(f"watch: {self.text} {self.last}")


def _offset(buffer: Buffer, index: tuple[int, ...]) -> int:
    if len(index) != len(buffer.shape) or any(not 0 <= i < n for i, n in zip(index, buffer.shape, strict=True)):
        raise UsageError(f"{buffer.name}{list(index)} does not exist", hint=f"Its shape is {list(buffer.shape)}")
    return sum(i * stride for i, stride in zip(index, buffer.strides, strict=True))
