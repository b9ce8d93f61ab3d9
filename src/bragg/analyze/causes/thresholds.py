"""The numbers that rules compare with, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CPU_CALL",
    "EXPOSED",
    "FEW_LAUNCHES",
    "IDLE_GPU",
    "JITTED",
    "MANY_ELEMENTWISE",
    "MANY_FILLS",
    "MANY_KERNELS",
    "MANY_LAUNCHES",
    "MUCH_GPU",
    "OFTEN",
    "PLAN_CALL",
    "PLAN_SHARE",
    "SHORT_KERNEL",
    "SMALL_COPY",
    "STAGED_COPY",
    "WAITS",
    "Threshold",
]


@dataclass(frozen=True)
class Threshold:
    """One number.

    Attributes:
        value: The number.
        unit: `ns`, `B`, `share` (0 to 1), or `1` for counts.
        meaning: What is compared with it.
        source: Where the number comes from.
    """

    value: float
    unit: str
    meaning: str
    source: str


_OWN = "our recordings of real programs on an H100: the value that parts programs with the defect from those without"

IDLE_GPU = Threshold(
    0.8, "share", "a GPU that works more than this is not helped by a faster host", "HTA, nsys: 0.5-0.8"
)
MANY_LAUNCHES = Threshold(50, "1", "launches a step, above which a graph saves more than it costs", _OWN)
FEW_LAUNCHES = Threshold(1000, "1", "launches in all, where no steps are known", _OWN)
SHORT_KERNEL = Threshold(20_000, "ns", "mean duration of a kernel, below which the launch costs more", "HTA: 5-20 us")
PLAN_CALL = Threshold(500_000, "ns", "host time of one call of an operator; launching takes 5 to 50 us", _OWN)
PLAN_SHARE = Threshold(0.02, "share", "of the wall time, for which a GPU waits for operators of one name", _OWN)
CPU_CALL = Threshold(50_000, "ns", "time of one call of an operator that computes on the CPU", _OWN)
MUCH_GPU = Threshold(0.03, "share", "of the GPU time", "below it, a change gains less than it costs to make")
STAGED_COPY = Threshold(100_000, "ns", "a copy that is long enough to tell whether the call waits for it", _OWN)
SMALL_COPY = Threshold(65_536, "B", "a copy whose cost is that of the call", "PCIe 5: 64 kB take 2 us, a call 5 us")
OFTEN = Threshold(10, "1", "small copies a step", _OWN)
WAITS = Threshold(0.5, "1", "waits a step", "less are the end of an epoch, or of the program")
MANY_KERNELS = Threshold(20, "1", "kernels that an optimizer launches a step", "fused and foreach ones launch 1 to 20")
MANY_FILLS = Threshold(50, "1", "fills of memory a step", _OWN)
MANY_ELEMENTWISE = Threshold(20, "1", "elementwise kernels a step", _OWN)
JITTED = Threshold(4, "1", "jitted functions that each step calls", "a step of JAX is one function")
EXPOSED = Threshold(0.05, "share", "of the wall time in communication while nothing else runs", "tb_plugin: 0.1")
