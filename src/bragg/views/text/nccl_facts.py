"""What NCCL said of its collectives, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bragg.model.meta.nccl import OLDEST_NCCL, Nccl, NcclCall, nccl_of, nccl_version_text
from bragg.model.meta.run import Run
from bragg.views.text.style import printable
from bragg.views.text.units import count_text, time_text


def nccl_lines(meta: Mapping[str, Any]) -> list[str]:
    """`NCCL: 640 operations in 2 groups, 1.2 s on the GPU, most of it 412 ms x all-reduce[…], RING LL, 16 channels`."""
    calls = [call for _, call in _calls(meta)]
    if not calls:
        return []
    n_groups = len({(call.group, call.n_ranks) for call in calls})
    counts = f"{count_text(sum(call.calls for call in calls), 'operation')} in {count_text(n_groups, 'group')}"
    gpu_ns = sum(call.gpu_ns for call in calls)
    most = max(calls, key=lambda call: call.gpu_ns)
    times = f", {time_text(gpu_ns)} on the GPU, {time_text(most.gpu_ns)} of it {most.name}" if gpu_ns else ""
    return [printable(f"NCCL: {counts}{times}")]


def nccl_json(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An object for each kind of call; empty when NCCL told nothing."""
    return [{"process_rank": rank, **asdict(call)} for rank, call in _calls(meta)]


def nccl_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """One line for what NCCL was to tell and did not. A process may well make no communicator."""
    all_told = list(filter(None, map(nccl_of, Run(meta).recording_metas)))
    if (old := next(filter(_is_too_old, all_told), None)) is not None:
        yield f"NCCL told nothing: {_why_nothing(old)}"
    for told in all_told:
        if told.lost_calls:
            yield f"{count_text(told.lost_calls, 'operation')} of NCCL not counted: too many different ones"
        if untimed := sum(call.calls - call.timed for call in told.calls):
            yield f"{count_text(untimed, 'operation')} of NCCL without time on the GPU: NCCL did not tell when it ended"


def nccl_notes(metas: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line if no process of a run made a communicator, although NCCL was to tell of them."""
    all_told = [told for meta in metas for told in map(nccl_of, Run(meta).recording_metas) if told is not None]
    if not all_told or any(told.interface or _is_too_old(told) for told in all_told):
        return []
    return [f"NCCL told nothing: {_why_nothing(max(all_told, key=lambda told: told.version))}"]


def _is_too_old(told: Nccl) -> bool:
    return not told.interface and 0 < told.version < OLDEST_NCCL


def _why_nothing(told: Nccl) -> str:
    version = nccl_version_text(told.version)
    if not told.version:
        return "the program has not loaded libnccl.so.2"
    if told.version < OLDEST_NCCL:
        return f"the program's version is {version}, and 2.27 is the first that does"
    return f"the program made no communicator of NCCL {version}"


def _calls(meta: Mapping[str, Any]) -> list[tuple[int | None, NcclCall]]:
    return [
        (Run(each).rank, call)
        for each in Run(meta).recording_metas
        for told in [nccl_of(each)]
        if told is not None
        for call in told.calls
    ]
