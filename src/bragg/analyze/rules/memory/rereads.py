"""Kernels that move more bytes between memory and the GPU than they need."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, finding_of_kernel
from bragg.analyze.causes.needs import GPU_TIME, Need
from bragg.analyze.causes.thresholds import MUCH_GPU, REREAD
from bragg.analyze.engine import Rule
from bragg.analyze.specs import find
from bragg.analyze.work import MEASURED_BYTES, STATED_BYTES, of_all_launches
from bragg.model import Confidence, Finding, Quantity

_CHANGE = (
    "go over the data once (online algorithms), or let blocks that run together use the same tiles "
    "(an order of programs in groups, smaller rows)"
)
_BYTES = Need(
    "bytes that kernels state, beside those of DRAM",
    "--counters dram",
    lambda evidence: {STATED_BYTES, MEASURED_BYTES} <= evidence.profile.metrics.keys(),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kernel in evidence.hot_kernels:
        defect = _judge(kernel)
        if defect is not None:
            yield finding_of_kernel(evidence, "reread-memory", kernel, defect)


def _judge(kernel: HotKernel) -> Defect | None:
    profile, bytes_per_s = kernel.profile, find(kernel.device).bytes_per_s
    columns = profile.own(STATED_BYTES), of_all_launches(profile, MEASURED_BYTES, "dram"), profile.own("gpu_time")
    told = kernel.nodes & (columns[0] > 0) & (columns[1] > 0)
    stated, moved, time_ns = (float(column[told].sum()) for column in columns)
    if not time_ns or not bytes_per_s or moved < REREAD.value * stated:
        return None
    moving = min(moved / bytes_per_s * 1e9 / time_ns, 1.0)
    return Defect(
        f"moves {moved / stated:.1f} times the bytes that it states between DRAM and the GPU",
        _CHANGE,
        moving * (1 - stated / moved),
        Confidence.LIKELY,
        (),
        (
            Quantity("bytes of DRAM", moved, "B"),
            Quantity("bytes that it states", stated, "B"),
            Quantity("share of its time that these bytes take at least", moving, "share"),
        ),
    )


RULE = Rule(
    _find,
    "kernels that read the same memory again and again, by counters",
    (GPU_TIME, _BYTES),
    (MUCH_GPU, REREAD),
    _CHANGE,
)
