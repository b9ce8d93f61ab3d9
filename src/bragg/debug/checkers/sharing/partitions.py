"""What is said of partitions of a Gluon kernel that race for shared memory."""

from __future__ import annotations

from bragg.debug.checkers.checker import LaunchFindings
from bragg.debug.gluon.partitions import Race
from bragg.debug.gluon.tracker import STARTED
from bragg.model import Severity

_HINT = (
    "Arrive at an mbarrier after the earlier access, and wait for that phase before the later one: each slot of a ring"
    " needs one barrier that says it is full, and one that says it is free"
)
_VERBS = {False: "read", True: "written"}


def tell_race(record: LaunchFindings, race: Race) -> None:
    """Add a race to the findings; the line that is executed now is the later access."""
    (did, had), (name, other) = [_VERBS[writes] for writes in (race.writes, race.other_writes)], race.names
    by, other_by = [STARTED[kind] for kind in race.kinds]
    message = f"shared memory is {did}{by} in {name}, which nothing orders after {other} has {had} it{other_by}"
    record.at_line(
        message, _HINT, Severity.ERROR, race.where, started_at=race.other_place, role="other access", why=race.why
    )
