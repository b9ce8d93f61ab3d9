"""One kernel in short, as lines of text and as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bragg.analyze.kernel_summary import KernelSummary
from bragg.model.kernels.compiled import CompiledKernel
from bragg.views.text.units import bytes_text, count_text, share_text, time_text


def summary_lines(kernel: KernelSummary) -> Iterator[str]:
    """At most three lines: what a thread and a block take, what limits the occupancy, and the GPU time."""
    if kernel.compiled is not None:
        yield from filter(None, (", ".join(_resources(kernel.compiled)), ", ".join(_shape(kernel.compiled))))
    if kernel.time_ns:
        time = f"{time_text(kernel.time_ns)} of GPU time ({share_text(kernel.share)})"
        mean = f", {time_text(kernel.time_ns / kernel.launches)} each" if kernel.launches > 1 else ""
        yield f"{time} in {count_text(kernel.launches, 'launch', 'launches')}{mean}"


def summary_json(kernel: KernelSummary) -> dict[str, Any]:
    """The same as values; what is not known is null."""
    return {
        "compiled": None if kernel.compiled is None else asdict(kernel.compiled),
        "gpu_time_ns": kernel.time_ns,
        "share_of_gpu_time": kernel.share,
        "launches": kernel.launches,
    }


def _resources(kernel: CompiledKernel) -> Iterator[str]:
    """What it takes of a multiprocessor."""
    if kernel.registers is not None:
        limit = f" (at most {kernel.max_registers})" if kernel.max_registers else ""
        yield f"{count_text(kernel.registers, 'register')} a thread{limit}"
    if kernel.spills is not None:
        spills = sum(each.count for each in kernel.spills)
        yield count_text(spills, "instruction spills", "instructions spill") if spills else "no spills"
    if kernel.stack_bytes is not None:
        yield f"{bytes_text(kernel.stack_bytes)} of stack"
    if kernel.dynamic_shared_bytes is not None:
        yield f"{bytes_text(kernel.dynamic_shared_bytes + (kernel.static_shared_bytes or 0))} of shared memory a block"


def _shape(kernel: CompiledKernel) -> Iterator[str]:
    """How it was compiled, and how much of a multiprocessor it fills."""
    if kernel.num_warps is not None:
        yield count_text(kernel.num_warps, "warp")
    if kernel.num_stages is not None:
        yield count_text(kernel.num_stages, "stage")
    if kernel.occupancy is not None:
        limit = f", limited by {kernel.occupancy_limit}" if kernel.occupancy_limit else ""
        yield f"occupancy at most {share_text(kernel.occupancy)}{limit}"
    if kernel.target:
        yield f"compiled for {kernel.target.replace('cuda:', 'sm_')}"
