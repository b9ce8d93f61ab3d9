"""When the first calls of a region, or the first steps, ended: what tells a program's warm-up from its steady state."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Programs warm up within a few steps: 0.5 kB each region.
_MAX_KEPT = 64


class FirstCalls:
    """Ends of the first calls, and of the last one, by CLOCK_REALTIME; the caller locks."""

    def __init__(self) -> None:
        self._began_ns = self._last_ns = 0
        self._ends_after_ns: list[int] = []

    def add(self, began_ns: int, ended_ns: int) -> None:
        """A call has ended."""
        if not self._ends_after_ns:
            self._began_ns = began_ns
        # The clock may have been set back.
        self._last_ns = max(ended_ns, self._last_ns, self._began_ns)
        if len(self._ends_after_ns) < _MAX_KEPT:
            self._ends_after_ns.append(self._last_ns - self._began_ns)

    def to_json(self) -> dict[str, Any]:
        """As the profile stores it: when each first call ended, since the first one began; empty without calls."""
        if not self._ends_after_ns:
            return {}
        kept = {
            "began_ns": self._began_ns,
            "ends_after_ns": list(self._ends_after_ns),
            "last_ns": self._last_ns,
        }
        return {"first_calls": kept}
