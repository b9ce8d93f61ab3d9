"""Steps of programs that JAX compiled: from the end of one call of a function to the end of its next.

Which function is the one that trains is not known here; times of each are kept.
"""

from __future__ import annotations

import os
import threading
from time import perf_counter_ns

from bragg.core import core
from bragg.record.inside.regions import Times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bragg.record.inside.regions import Reading

__all__ = ["CALL_STEPS", "CallSteps"]


class _Function:
    """Calls of one function.

    Attributes:
        ended_ns: When the latest one ended; None: the next step begins with its call.
        called_ns: Time inside of the calls.
        longest_ns: Of the longest one, which compiled.
        steps: What lies between their ends.
    """

    def __init__(self) -> None:
        self.ended_ns: int | None = None
        self.called_ns = self.longest_ns = 0
        self.steps = Times()

    def add(self, began_ns: int, ended_ns: int) -> None:
        self.called_ns += ended_ns - began_ns
        self.longest_ns = max(self.longest_ns, ended_ns - began_ns)
        self.steps.add(ended_ns - (began_ns if self.ended_ns is None else self.ended_ns), counts=True)
        to_realtime_ns = core.now_ns() - perf_counter_ns()
        self.steps.first_calls.add(began_ns + to_realtime_ns, ended_ns + to_realtime_ns)
        self.ended_ns = ended_ns

    def to_json(self) -> dict[str, Any]:
        steps = {**self.steps.to_json(), "in_steps_ns": self.steps.total_ns}
        return {**steps, "called_ns": self.called_ns - self.longest_ns}


class CallSteps:
    """Calls of this process, by the name of the function."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        self._free_lock()
        os.register_at_fork(after_in_child=self._free_lock)

    def _free_lock(self) -> None:
        self._lock = threading.Lock()  # not the one that a thread held which the child does not have

    def begin(self) -> None:
        """Calls are seen from now on: what lies between them and earlier ones is not a step."""
        with self._lock:
            for function in self._functions.values():
                function.ended_ns = None

    def called(self, name: str, began_ns: int, ended_ns: int) -> None:
        """A call has ended."""
        with self._lock:
            function = self._functions.get(name)
            if function is None:
                function = self._functions[name] = _Function()
            function.add(began_ns, ended_ns)

    def reading(self) -> Reading:
        """Times of all functions that were called again, as JSON."""
        with self._lock:
            return {
                f"step of {name}": function.to_json()
                for name, function in self._functions.items()
                if function.steps.count > 1
            }


CALL_STEPS = CallSteps()
