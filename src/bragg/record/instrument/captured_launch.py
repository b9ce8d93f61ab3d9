"""A launch with clocks that was recorded into a CUDA graph, and what its last replay stored."""

from __future__ import annotations

import time
from typing import NamedTuple

from bragg.code.instrument.readings import launches_in
from bragg.code.instrument.rewriting import CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.instrument.buffers import Buffers, Plan
    from bragg.record.instrument.driver import Driver


_LOOK_EVERY_S = 0.002


class Stored(NamedTuple):
    """What a launch stored.

    Attributes:
        headers, frames: As the kernel wrote them.
        plan: Which blocks wrote.
        replays: Of the graph that the launch is part of, with this one; 0: it is in none.
    """

    headers: bytes
    frames: bytes
    plan: Plan
    replays: int = 0


class CapturedLaunch:
    """Each replay of the graph overwrites what the one before stored.

    The program's streams are not touched. The kernel stores nothing until its variable is set, behind the zeros.

    Args:
        driver: Of the context.
        module, function: Of this launch alone: the driver's handles.
        buffers: Of this launch alone, zero everywhere.
        plan: Which blocks write.
    """

    def __init__(self, driver: Driver, module: int, function: int, buffers: Buffers, plan: Plan) -> None:
        self.function = function
        self._buffers = buffers
        self._plan = plan
        driver.write(driver.symbol(module, CONTROL), buffers.control(plan))

    def end(self, stream: int) -> None:
        """After the launch: an event would become part of the graph."""

    def last_replay(self, until_s: float) -> Stored | None:
        """What the last replay stored; None: there was none, or they did not end in time.

        Args:
            until_s: On the monotonic clock.
        """
        while True:
            replays = launches_in(self._buffers.headers(self._plan))
            if replays == 0:
                return None
            if replays is not None:
                headers, frames = self._buffers.read(self._plan)
                if launches_in(headers) == launches_in(self._buffers.headers(self._plan)) == replays:
                    return Stored(headers, frames, self._plan, replays)
            if time.monotonic() >= until_s:
                return None
            time.sleep(_LOOK_EVERY_S)
