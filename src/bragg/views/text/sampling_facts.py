"""What the sampling of instructions found, cost and lost, as the meta data of a profile tells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bragg.views.text.units import count_text, share_text, time_text

__all__ = ["sampling_line", "sampling_warnings"]


def sampling_line(meta: Mapping[str, Any]) -> str:
    """`1,200,000 instruction samples (98 % of known launches), one in 2^15 cycles`; empty when nothing was sampled."""
    sampling = _table(meta, "sampling")
    samples = _count(sampling, "samples")
    if not samples:
        return ""
    text = f"{count_text(samples, 'instruction sample')} ({share_text(_count(sampling, 'exact') / samples)} exact"
    periods = sorted({_count(device, "period") for device in _devices(sampling).values()})
    text += f"), one in {' or '.join(f'2^{period}' for period in periods)} cycles" if periods else ")"
    enabling_ns = sum(_count(device, "enabling_ns") for device in _devices(sampling).values())
    text += f", {time_text(enabling_ns)} to begin" if enabling_ns else ""
    if cycle := _table(sampling, "cycle"):
        reached, budget = _number(cycle, "reached"), _number(cycle, "budget")
        text += f"; {count_text(_count(cycle, 'windows'), 'window')} cost {share_text(reached)}"
        text += f" of the {share_text(budget)} they may"
    return text


def sampling_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """What is missing of the samples, and why; one line each."""
    sampling = _table(meta, "sampling")
    if reason := sampling.get("reason"):
        yield f"instructions were not sampled: {reason}"
    elif (
        sampling
        and not _count(sampling, "samples")
        and not any("reason" in each for each in _devices(sampling).values())
    ):
        yield "instructions were not sampled: no kernel ran long enough for it"
    for ordinal, device in _devices(sampling).items():
        if reason := device.get("reason"):
            yield f"instructions of GPU {ordinal} were not sampled: {reason}"
        if restarts := _count(device, "restarts"):
            yield (
                f"the sample buffer of GPU {ordinal} was full {count_text(restarts, 'time')}: "
                f"sampled every 2^{device.get('period')} cycles since"
            )
        if dropped := _count(device, "dropped"):
            yield f"{count_text(dropped, 'instruction sample')} of GPU {ordinal} dropped by the hardware"
    if contexts := _count(sampling, "other_contexts"):
        yield f"{count_text(contexts, 'CUDA context')} not sampled: only one of each GPU can be"
    if without := _count(sampling, "without_launch"):
        yield f"{count_text(without, 'instruction sample')} of kernels whose launch was not seen"
    if refused := _count(_table(meta, "statistics"), "refused_samples"):
        yield f"{count_text(refused, 'instruction sample')} not kept: too many different instructions"


def _count(values: Mapping[str, Any], name: str) -> int:
    return int(_number(values, name))


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    return value if isinstance(value, (int, float)) and math.isfinite(value) else 0


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    return value if isinstance(value, Mapping) else {}


def _devices(sampling: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: device for name, device in _table(sampling, "devices").items() if isinstance(device, Mapping)}
