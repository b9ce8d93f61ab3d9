"""What of the GPU itself bounds its work: memory bandwidth or arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.work import BOUND_SHARE, devices_of, has_work, roof_parts_s, work_by_counters


@dataclass(frozen=True)
class Limits:
    """Shares of the GPU time, 0 to 1; what is in neither is bound by something else, or not known.

    Attributes:
        memory: In kernels that move bytes at most of the bandwidth of the memory or of a cache.
        arithmetic: In kernels that compute at most of the peak.
        is_measured: Whether counters tell, else the bytes and flops that the program states.
        has_caches: Whether caches were counted, too.
    """

    memory: float
    arithmetic: float
    is_measured: bool
    has_caches: bool = False

    @property
    def named(self) -> dict[str, float]:
        """Each share with what it is of."""
        memory = "bandwidth of memory and caches" if self.has_caches else "memory bandwidth"
        return {memory: self.memory, "arithmetic": self.arithmetic}


def hardware_limits(evidence: Evidence) -> Limits | None:
    """Of the GPUs that bound a program; None: nothing tells bytes or flops."""
    profile, gpu_ns = evidence.profile, evidence.bounding_ns
    if not has_work(profile) or not gpu_ns.sum():
        return None
    work = work_by_counters(profile)
    compute_s, memory_s = (np.nan_to_num(seconds) for seconds in roof_parts_s(work, devices_of(profile)))
    is_near = np.maximum(compute_s, memory_s) * 1e9 >= BOUND_SHARE * profile.own("gpu_time")
    shares = [float(gpu_ns[is_near & of].sum() / gpu_ns.sum()) for of in (memory_s >= compute_s, memory_s < compute_s)]
    return Limits(shares[0], shares[1], work.is_measured, bool(work.caches_ns))
