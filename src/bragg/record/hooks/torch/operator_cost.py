"""PyTorch's own cost of an observed operator: a part of the overhead that profiles state."""

from __future__ import annotations

from time import perf_counter_ns

from bragg.core import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


# 5 ms in all. The first operator after an observer came or went is not timed.
_OPERATORS, _ROUNDS = 8, 8
# Between two operators a program runs so much that most of PyTorch's observing has left the caches: with warm ones it
# takes 70 ns, in a program 100 to 240 (the most: benchmarks/results/h100-llama.json). Copying so much empties the L2 of
# a core, which takes 160 to 700 ns, depending on the machine: more than a program's operators find.
_EVICTING_BYTES = 1 << 20
_COLDEST = 3  # times what it takes with warm caches

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
    cold_ns, warm_ns = (_added_ns(torch, library, bytearray(size)) for size in (_EVICTING_BYTES, 0))
    return max(min(cold_ns, _COLDEST * warm_ns), 0)


def _added_ns(torch: ModuleType, library: str, evicting: bytearray) -> int:
    """The median over rounds, as a core that another program shares changes its pace meanwhile."""
    added_ns: list[int] = []
    for _ in range(_ROUNDS):
        plain_ns = _median(_times_ns(torch, evicting))
        core.begin_operator_trial(library)
        try:
            added_ns.append(_median(_times_ns(torch, evicting)) - plain_ns)
        finally:
            core.end_operator_trial("aten::empty")
    return _median(added_ns)


def _times_ns(torch: ModuleType, evicting: bytearray) -> list[int]:
    """Time of some operators, with caches as cold as the memory is large that is copied before each."""
    times_ns = []
    for _ in range(_OPERATORS + 1):
        bytes(evicting)
        start_ns = perf_counter_ns()
        torch.empty(0, device="cpu")
        times_ns.append(perf_counter_ns() - start_ns)
    return times_ns[1:]


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]
