"""PyTorch's own cost of an observed operator: a part of the overhead that profiles state."""

from __future__ import annotations

from time import perf_counter_ns

from bragg.core import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["tell_cost_of_observers"]

# 5 ms in all. The first operator after an observer came or went is not timed.
_OPERATORS, _ROUNDS = 8, 8
# Between two operators a program runs so much that most of PyTorch's observing has left the caches: with warm ones it
# takes 70 ns, in a program 100 to 200.
_EVICTING_BYTES = 1 << 20

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
    """For one operator: the median over rounds, as a core that another program shares changes its pace meanwhile."""
    added_ns: list[int] = []
    evicting = bytearray(_EVICTING_BYTES)
    for _ in range(_ROUNDS):
        plain_ns = _median(_times_ns(torch, evicting))
        core.begin_operator_trial(library)
        try:
            added_ns.append(_median(_times_ns(torch, evicting)) - plain_ns)
        finally:
            core.end_operator_trial("aten::empty")
    return max(_median(added_ns), 0)


def _times_ns(torch: ModuleType, evicting: bytearray) -> list[int]:
    """Time of some operators, each with cold caches: other memory is copied before it."""
    times_ns = []
    for _ in range(_OPERATORS + 1):
        bytes(evicting)
        start_ns = perf_counter_ns()
        torch.empty(0, device="cpu")
        times_ns.append(perf_counter_ns() - start_ns)
    return times_ns[1:]


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]
