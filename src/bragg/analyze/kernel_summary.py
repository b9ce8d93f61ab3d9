"""One kernel in short: what the compiler made of it, and what it takes of the GPU's time."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.analyze.kernel_choice import KernelChoice
from bragg.model import Profile
from bragg.model.kernels.compiled import CompiledKernel


@dataclass(frozen=True)
class KernelSummary:
    """A kernel over all call paths.

    Attributes:
        compiled: What the compiler made of it; None: the profile does not have its code.
        time_ns: GPU time; 0: none was recorded.
        share: Of the GPU time of the profile, 0 to 1.
        launches: How often it ran on the GPU.
    """

    compiled: CompiledKernel | None
    time_ns: float = 0.0
    share: float = 0.0
    launches: int = 0


def summary_of(profile: Profile, kernel: KernelChoice) -> KernelSummary:
    """A kernel in short.

    Args:
        profile: Where it ran.
        kernel: See `choose_kernel`.
    """
    compiled = CompiledKernels(profile).of(kernel.name)
    if not {"gpu_time", "gpu_count"} <= profile.metrics.keys():
        return KernelSummary(compiled)
    time_ns = float(profile.own("gpu_time")[kernel.nodes].sum())
    total_ns = float(profile.total("gpu_time"))
    launches = int(profile.own("gpu_count")[kernel.nodes].sum())
    return KernelSummary(compiled, time_ns, time_ns / total_ns if total_ns else 0.0, launches)
