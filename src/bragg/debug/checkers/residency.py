"""Programs that wait for others, in a grid that is larger than what the GPU holds at once.

The scheduler of waiting programs does the work: with this checker it has no more of them under way than the target.
"""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.state import Listeners


def _watch(_record: LaunchFindings) -> Listeners:
    return Listeners(is_resident=True)


RESIDENCY = Checker("residency", "programs that wait for more programs than the GPU holds at once", True, _watch)
