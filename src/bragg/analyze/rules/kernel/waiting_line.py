"""The line at which the warps of a kernel wait most, by samples of its instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.annotated_code import Samples
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.in_flight import share_in_flight
from bragg.analyze.causes.kernel_finding import Defect, finding_of_kernel
from bragg.analyze.causes.needs import GPU_TIME, SAMPLES
from bragg.analyze.causes.thresholds import MUCH_GPU, NEAR_ROOF, WAITING_LINE
from bragg.analyze.engine import Rule
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.source_lines import samples_of_own_lines
from bragg.code.stall_reasons import StallGroup, StallReason
from bragg.model import Confidence, Finding, Place, Quantity
from bragg.model.finding import percent_text

# Other warps run meanwhile: a kernel on an H100 that waited in 26 % of its samples became 4 % faster without.
_SAVED = 0.2
# What a program can change. Waiting for tensor cores, or between dependent instructions, is how fast kernels look.
_CHANGES = {
    StallGroup.MEMORY: "load earlier or ahead (num_stages), keep more warps resident, or load less: "
    "wider accesses, smaller types, tiles that are used again",
    StallGroup.SHARED_MEMORY: "touch shared memory less often: fewer changes of layout and reductions in loops, "
    "tiles without bank conflicts, tl.exp2 instead of costlier functions",
    StallGroup.BARRIER: "let warps meet less often: reduce after the loop, or use fewer warps (num_warps)",
    StallGroup.INSTRUCTION_FETCH: "make the code smaller: loops of tl.range instead of tl.static_range",
}
_ARITHMETIC = "compute less: reciprocals instead of divisions, smaller types, values of the loop's outside before it"


@dataclass(frozen=True)
class _Wait:
    """What warps wait for at a line.

    Attributes:
        place: File and line.
        reason: For what.
        share: Of the kernel's samples, 0 to 1.
        samples: All of the line's.
    """

    place: tuple[str, int]
    reason: StallReason
    share: float
    samples: Samples


def _find(evidence: Evidence) -> Iterator[Finding]:
    choices = {each.name: each for each in every_kernel(evidence.profile)}
    for kernel in evidence.hot_kernels:
        lines = samples_of_own_lines(evidence.profile, choices[kernel.name])
        reached = _reached(kernel)
        wait = _longest(lines, reached is None or reached < NEAR_ROOF.value)
        if wait is not None and wait.share >= WAITING_LINE.value:
            yield finding_of_kernel(evidence, "waiting-line", kernel, _defect(wait, reached))


def _longest(lines: dict[tuple[str, int], Samples], with_memory: bool) -> _Wait | None:
    total = sum(samples.count for samples in lines.values())
    waits = [
        _Wait(place, reason, count / total, samples)
        for place, samples in lines.items()
        for reason, count in samples.by_reason.items()
        if _change(reason) and (with_memory or reason.group is not StallGroup.MEMORY)
    ]
    return max(waits, key=lambda wait: wait.share, default=None)


def _change(reason: StallReason) -> str:
    return _ARITHMETIC if reason.name == "math_pipe_throttle" else _CHANGES.get(reason.group, "")


def _reached(kernel: HotKernel) -> float | None:
    """Part of what the memory can do: by its flops and bytes, or what it asks for at once; None: not known."""
    return share_in_flight(kernel) if kernel.roof_share is None else kernel.roof_share


def _defect(wait: _Wait, reached: float | None) -> Defect:
    is_memory, line = wait.reason.group is StallGroup.MEMORY, wait.place[1]
    # Only results have a line that makes them; the line's other waits may be for such.
    maker = wait.samples.main_producer if wait.reason == wait.samples.main_reason else None
    origin = f" that line {maker[1]} makes" if maker and maker != wait.place else ""
    saved = wait.share * _SAVED
    if is_memory and reached is not None:
        saved = min(saved, 1 - reached)
    return Defect(
        f"waits at line {line} in {percent_text(wait.share)} of its samples for {wait.reason.meaning}{origin}",
        _change(wait.reason),
        # Else it is not known whether the memory could be faster.
        None if is_memory and reached is None else saved,
        Confidence.HEURISTIC,
        [Place(*place) for place in (maker, wait.place) if place],
        (
            Quantity("share of its samples that wait there", wait.share, "share"),
            Quantity("samples of the line", float(np.round(wait.samples.count))),
            *(
                [Quantity("share of the memory's speed that it can reach", reached, "share")]
                if is_memory and reached
                else []
            ),
        ),
        saving_is_measured=True,
    )


RULE = Rule(
    _find,
    "the line at which warps of a kernel wait most",
    (GPU_TIME, SAMPLES),
    (MUCH_GPU, WAITING_LINE, NEAR_ROOF),
    "by what they wait for: load earlier, touch shared memory less often, meet less often, compute less",
)
