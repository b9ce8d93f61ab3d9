"""What hardware counters lack, in a line for each GPU and reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.model.facts import Facts
from bragg.model.meta.run import Run
from bragg.views.text.units import count_text, time_text


def counter_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """Why counters were not sampled, which ones were left out, and for how long nothing was."""
    for each in Run(meta).recording_metas:
        told = Facts(each).table("counters")
        if reason := told.text("reason"):
            yield f"no hardware counters: {reason}"
        if other := told.text("other_nvperf"):
            was = "was loaded before the one that comes with CUPTI"
            yield f"counters: {other} {was}; its metrics may be of another release"
        for ordinal, device in told.table("devices").tables().items():
            yield from _of_device(ordinal, device)
        if lost := told.count("lost_values"):
            yield f"{count_text(lost, 'value')} of counters not kept: the timeline was not written in time"


def _of_device(ordinal: str, device: Facts) -> Iterator[str]:
    if reason := device.text("reason"):
        yield f"no counters of GPU {ordinal}: {reason}"
        return
    if left_out := device.texts("left_out"):
        yield (
            f"GPU {ordinal} does not count {', '.join(left_out)} with this CUPTI in one pass: "
            "bragg doctor --counters lists what it counts"
        )
    if gaps := device.count("gaps"):
        restarts = device.count("restarts")
        why = f", {restarts:,} of them since sampling began again less often" if restarts else ""
        missing = time_text(device.count("gap_ns"))
        yield f"counters of GPU {ordinal} were not sampled for {missing} in all ({count_text(gaps, 'gap')}{why})"
