"""Results that depend on the order in which programs run: places that were handed out by atomics, the last writer's."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.again.replay import Difference, Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.expressions import feeding
from bragg.debug.flow.scheduler import waits
from bragg.debug.state import Listeners
from bragg.model import Severity

# Programs that wait for earlier ones take turns the more often, the later those come: 300 backwards took 30 s.
_MOST_WAITING = 64
_HINT = "Compute each place from a prefix sum of counts (tl.cumsum), or sort what comes out"


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    if launch.only is not None or launch.programs < 2:
        return Listeners()
    if launch.programs > _MOST_WAITING and launch.program.is_rewritten and waits(launch.program):
        return Listeners()
    replay = Replay(launch)

    def compare() -> None:
        if any(one.rule == "data-race" and one.kernel == launch.kernel for one in record.report):
            return  # The race is the reason, and is reported.
        backwards = range(launch.programs - 1, -1, -1)
        shuffled = np.random.default_rng(0).permutation(launch.programs).tolist()
        differences = replay.in_order(backwards) or replay.in_order(shuffled)
        record.report.verdicts.vary(launch.kernel, "order of programs")
        for difference in differences:
            _tell(record, replay, difference)

    return Listeners(access=[replay.see], end=[compare])


def _tell(record: LaunchFindings, replay: Replay, difference: Difference) -> None:
    writer = replay.writer(difference)
    name = difference.buffer.name
    example = f"{difference.element} is {difference.before}, and {difference.after} in another order"
    if writer is None:
        return
    here = writer.file, writer.line
    tickets = [place for place in feeding(writer.atomics, here) if place != here] if writer.atomics else []
    if tickets:
        message = f"elements of {name} depend on the order in which programs get what this atomic returns"
    else:
        message = f"elements of {name} depend on the order in which programs run"
    blamed = tickets[-1] if tickets else here
    record.at_source(*blamed, message, _HINT, Severity.WARNING, difference.buffer, example, here)


ORDER = Checker("order-dependence", "results that depend on the order in which programs run", False, _watch)
