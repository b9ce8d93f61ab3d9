"""What exact counters cost, and which kernels have none, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.model.facts import Facts
from bragg.model.meta.run import Run
from bragg.views.text.units import count_text, time_text

_WHY = {
    "cooperative": "cooperative launches, whose blocks wait for each other",
    "communicates": "they wait for other GPUs",
    "captured": "a stream was captured into a graph",
    "launched_beside": "another thread launched at the same time",
}


def exact_lines(meta: Mapping[str, Any]) -> Iterator[str]:
    """How many launches were counted exactly and what that took, and why others were not."""
    for each in Run(meta).recording_metas:
        told = Facts(each).table("exact_counters")
        if reason := told.text("reason"):
            yield f"no exact counters: {reason}"
        elif told.text("kernels"):
            yield from _counted(told)
        for ordinal, device in told.table("devices").tables().items():
            yield from _of_device(ordinal, device)


def _counted(told: Facts) -> Iterator[str]:
    launches = told.count("counted_launches")
    has_ended = any(device.text("reason") for device in told.table("devices").tables().values())
    not_counted = {why: told.table("not_counted").count(why) for why in _WHY}
    if launches:
        kernels = count_text(told.count("counted_kernels"), "kernel")
        yield (
            f"exact counters: {count_text(launches, 'launch', 'launches')} of {kernels} counted one at a time; "
            f"that took {time_text(told.count('spent_ns'))}, which host times contain"
        )
    elif not any(not_counted.values()) and not has_ended:
        yield f"exact counters: no kernel was launched whose name {told.text('kernels')!r} finds"
    for why, count in not_counted.items():
        if count:
            yield f"exact counters: none of {count_text(count, 'kernel')}: {_WHY[why]}"
    if incomplete := told.count("incomplete_kernels"):
        kernels = count_text(incomplete, "kernel")
        yield f"exact counters: {kernels} ran too few launches for all counters, which take turns over launches"


def _of_device(ordinal: str, device: Facts) -> Iterator[str]:
    if reason := device.text("reason"):
        yield f"exact counters of GPU {ordinal} ended: {reason}"
    if left_out := device.texts("left_out"):
        yield f"GPU {ordinal} does not count {', '.join(left_out)} with this CUPTI"
