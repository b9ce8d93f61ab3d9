"""What the sampling of instructions found, cost and lost, as the meta data of a profile tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.model.meta.run import Run
from bragg.views.text.units import count_text, share_text, time_text


def sampling_line(meta: Mapping[str, Any]) -> str:
    """`1,200,000 instruction samples (98 % of known launches), one in 2^15 cycles`; empty when nothing was sampled."""
    sampling = Run(meta).sampling
    samples = sampling.count("samples")
    if not samples:
        return ""
    text = f"{count_text(samples, 'instruction sample')} ({share_text(sampling.count('exact') / samples)} exact"
    periods = sorted({device.count("period") for device in sampling.table("devices").tables().values()})
    text += f"), one in {' or '.join(f'2^{period}' for period in periods)} cycles" if periods else ")"
    enabling_ns = sum(device.count("enabling_ns") for device in sampling.table("devices").tables().values())
    text += f", {time_text(enabling_ns)} to begin" if enabling_ns else ""
    if cycle := sampling.table("cycle"):
        reached, budget = cycle.number("reached"), cycle.number("budget")
        text += f"; {count_text(cycle.count('windows'), 'window')} cost {share_text(reached)}"
        text += f" of the {share_text(budget)} they may"
    return text


def sampling_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """One line for each kind of missing samples, with the reason."""
    sampling = Run(meta).sampling
    if reason := sampling.text("reason"):
        yield f"instructions were not sampled: {reason}"
    elif (
        sampling
        and not sampling.count("samples")
        and not any("reason" in each for each in sampling.table("devices").tables().values())
    ):
        yield "instructions were not sampled: no kernel ran long enough"
    for ordinal, device in sampling.table("devices").tables().items():
        if reason := device.text("reason"):
            yield f"instructions of GPU {ordinal} were not sampled: {reason}"
        if restarts := device.count("restarts"):
            yield (
                f"the sample buffer of GPU {ordinal} was full {count_text(restarts, 'time')}: "
                f"sampled every 2^{device.text('period', 'None')} cycles since"
            )
        if dropped := device.count("dropped"):
            yield f"{count_text(dropped, 'instruction sample')} of GPU {ordinal} dropped by the hardware"
    if contexts := sampling.count("other_contexts"):
        yield f"{count_text(contexts, 'CUDA context')} not sampled: only one of each GPU can be"
    if without := sampling.count("without_launch"):
        yield f"{count_text(without, 'instruction sample')} of kernels whose launch was not seen"
    if refused := Run(meta).lost("statistics", "refused_samples"):
        yield f"{count_text(refused, 'instruction sample')} not kept: too many different instructions"
