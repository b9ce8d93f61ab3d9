"""What PyTorch itself does for an operator because somebody observes it: a part of the overhead that profiles state."""

from __future__ import annotations

from time import perf_counter_ns

from bragg.core import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["tell_cost_of_observers"]

# 2 ms in all; the least of the bursts counts.
_OPERATORS, _BURSTS = 100, 8

_is_told = False


def tell_cost_of_observers(torch: ModuleType, library: str) -> None:
    """Measure it once a process, with an observer that does nothing, and tell the core.

    Args:
        torch: PyTorch, whose observers were found to work.
        library: Its library that has them.
    """
    global _is_told
    if not _is_told:
        core.set_operator_cost(_cost_ns(torch, library))
        _is_told = True


def _cost_ns(torch: ModuleType, library: str) -> int:
    """For one operator."""
    plain_ns, observed_ns = [], []
    for _ in range(_BURSTS):
        plain_ns.append(_burst_ns(torch))
        core.begin_operator_trial(library)
        try:
            observed_ns.append(_burst_ns(torch))
        finally:
            core.end_operator_trial("aten::empty")
    return max(min(observed_ns) - min(plain_ns), 0) // _OPERATORS


def _burst_ns(torch: ModuleType) -> int:
    empty = torch.empty
    start_ns = perf_counter_ns()
    for _ in range(_OPERATORS):
        empty(0, device="cpu")
    return perf_counter_ns() - start_ns
