"""Why warps do not issue, as the samples of NVIDIA GPUs name it, and what that means to a user.

A sample shows one warp in one cycle. CUPTI counts each reason twice: in all samples, and under a name that ends in
`_not_issued` in those of cycles in which its scheduler issued nothing at all, which is when waiting costs time.
GPUs differ in their reasons (those before sm_90 know no warpgroups): what is not in the table is kept, as other.

Source: metrics of Nsight Compute 2025 and CUPTI 13 for sm_70 to sm_120; 20 reasons on an H200.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

VENDOR_PREFIX = "smsp__pcsamp_warps_issue_stalled_"
METRIC_PREFIX = "stalled_"
_NOT_ISSUED = "_not_issued"
# CUPTI and Nsight Compute spell some of them differently.
_SPELLINGS = {"no_instruction": "no_instructions", "dispatch": "dispatch_stall"}


class StallGroup(Enum):
    """Groups of stall reasons that mean the same to a user."""

    ISSUED = "issued"
    """It issued an instruction in this cycle."""
    NOT_SELECTED = "not selected"
    """It could issue, and another warp did."""
    MEMORY = "memory"
    SHARED_MEMORY = "shared memory"
    BARRIER = "barrier"
    TENSOR = "tensor core"
    MATH = "math"
    ISSUE = "issue"
    INSTRUCTION_FETCH = "instruction fetch"
    SLEEP = "sleep"
    OTHER = "other"

    @property
    def is_stall(self) -> bool:
        """Whether a warp of this group could not issue."""
        return self not in (StallGroup.ISSUED, StallGroup.NOT_SELECTED)


@dataclass(frozen=True)
class StallReason:
    """One reason.

    Attributes:
        name: The vendor's, without what all have in common: `long_scoreboard`.
        group: What it means to a user.
        meaning: What the warp waits for; empty for a reason that is not in the table.
    """

    name: str
    group: StallGroup
    meaning: str = ""

    @property
    def metric(self) -> str:
        """Name of the metric that counts all samples of this reason."""
        return METRIC_PREFIX + self.name

    @property
    def vendor_name(self) -> str:
        """Name in CUPTI and Nsight Compute."""
        return VENDOR_PREFIX + self.name


_REASONS = {
    name: StallReason(name, group, meaning)
    for name, group, meaning in (
        ("selected", StallGroup.ISSUED, "issued an instruction"),
        ("not_selected", StallGroup.NOT_SELECTED, "ready, but the scheduler chose another warp"),
        ("long_scoreboard", StallGroup.MEMORY, "data of global or local memory, or of a memory barrier object"),
        ("lg_throttle", StallGroup.MEMORY, "room in the queue of global and local memory"),
        ("drain", StallGroup.MEMORY, "its stores to be written before it can end"),
        ("tex_throttle", StallGroup.MEMORY, "room in the queue of the texture unit"),
        ("imc_miss", StallGroup.MEMORY, "a constant that was not in the cache"),
        ("short_scoreboard", StallGroup.SHARED_MEMORY, "data of shared memory, or a result of a special function"),
        ("mio_throttle", StallGroup.SHARED_MEMORY, "room in the queue of shared memory and special functions"),
        ("barrier", StallGroup.BARRIER, "the other warps of its block"),
        ("membar", StallGroup.BARRIER, "a memory fence"),
        ("gmma", StallGroup.TENSOR, "the tensor core to take a warpgroup's product"),
        ("warpgroup_arrive", StallGroup.TENSOR, "the other warps of its warpgroup, or the warpgroup's products"),
        ("math_pipe_throttle", StallGroup.MATH, "a math unit that is busy: arithmetic, or mma.sync"),
        ("wait", StallGroup.MATH, "the fixed latency of the instruction before"),
        ("branch_resolving", StallGroup.ISSUE, "the target of a branch"),
        ("dispatch_stall", StallGroup.ISSUE, "the dispatcher, which is held up"),
        ("no_instructions", StallGroup.INSTRUCTION_FETCH, "instructions that were not in the cache"),
        ("sleeping", StallGroup.SLEEP, "its own sleep or yield to end"),
        ("misc", StallGroup.OTHER, "something that the hardware does not name"),
    )
}


def parse_vendor_name(name: str) -> tuple[StallReason, bool]:
    """A reason as CUPTI lists it, and whether it counts only cycles in which nothing was issued.

    Raises:
        ValueError: The name is not that of a stall reason.
    """
    if not name.startswith(VENDOR_PREFIX):
        raise ValueError(f"{name} is not a stall reason")
    short = name.removeprefix(VENDOR_PREFIX)
    return _reason(short.removesuffix(_NOT_ISSUED)), short.endswith(_NOT_ISSUED)


def reason_of_metric(metric: str) -> StallReason:
    """The reason that a metric `stalled_…` counts.

    Raises:
        ValueError: The metric is another one.
    """
    if not metric.startswith(METRIC_PREFIX):
        raise ValueError(f"{metric} counts no stall reason")
    return _reason(metric.removeprefix(METRIC_PREFIX))


def stall_metrics(names: Iterable[str]) -> dict[str, StallReason]:
    """Those of the metrics that count the samples of one reason."""
    return {name: reason_of_metric(name) for name in names if name.startswith(METRIC_PREFIX)}


def main_reason(samples: Mapping[StallReason, float]) -> StallReason | None:
    """The reason with most samples among those that hold a warp up; None when there is none."""
    stalls = {reason: count for reason, count in samples.items() if reason.group.is_stall and count > 0}
    return max(stalls, key=stalls.__getitem__, default=None)


def _reason(name: str) -> StallReason:
    name = _SPELLINGS.get(name, name)
    return _REASONS.get(name) or StallReason(name, StallGroup.OTHER)
