"""Chrome traces in Proton's structure: one document, one lane for each thread and each stream.

{"baseTimeNanoseconds": ..., "displayTimeUnit": "us", "traceEvents": [lanes, slices, arrows]}
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.files import new_file
from bragg.model import FrameKind, Profile, TrackKind
from bragg.model.ids import NodeId
from bragg.model.sample_stacks import without_samples
from bragg.proton.output.view import proton_view
from bragg.proton.recording import timed_values
from bragg.proton.upstream import TRACE_OF_KERNELS_ALONE

__all__ = ["write_trace"]

# Proton's numbers of lanes; those of threads count from 0. Streams of devices after the first have lanes of their own.
_FIRST_STREAM_LANE = 200_000
_LANES_PER_DEVICE = 100_000
_CATEGORIES = {FrameKind.SCOPE: "scope", FrameKind.KERNEL: "kernel"}


def write_trace(profile: Profile | None, path: Path) -> None:
    """Write a trace.

    Args:
        profile: As it was recorded; None: nothing was.
        path: The file.

    Raises:
        BadFile: It cannot be written.
    """
    events: Iterator[dict[str, Any]] = iter(())
    base_ns = 0
    if profile is not None and len(profile.slices):
        trace = _Trace(proton_view(profile))
        base_ns, events = trace.base_ns, trace.events()
    header = json.dumps({"baseTimeNanoseconds": base_ns, "displayTimeUnit": "us"})
    with new_file(path) as file:
        file.write(f'{header[:-1]}, "traceEvents": ['.encode())
        separator = "\n"
        for event in events:
            file.write(f"{separator}{json.dumps(event, ensure_ascii=False)}".encode("utf-8", "surrogatepass"))
            separator = ",\n"
        file.write(b"\n]}\n")


class _Trace:
    """The events of a profile."""

    def __init__(self, profile: Profile) -> None:
        profile = without_samples(profile)  # Proton has none
        self._profile = profile
        self._kinds = profile.tree.kind
        self.base_ns = int(profile.slices.start_ns.min())
        self._threads = _thread_numbers(profile)

    def events(self) -> Iterator[dict[str, Any]]:
        if TRACE_OF_KERNELS_ALONE:
            yield from self._slices(only=FrameKind.KERNEL)
            return
        yield from self._lanes()
        yield from self._slices()
        yield from self._arrows()

    def _lanes(self) -> Iterator[dict[str, Any]]:
        yield _metadata("process_name", 0, {"name": "Trace"})
        yield _metadata("process_sort_index", 0, {"sort_index": 0})
        tracks = self._profile.tracks
        for track in range(len(tracks)):
            device = int(tracks.device[track])
            stream = f"Stream {tracks.stream[track]}"
            on_gpu = f"GPU {stream}" if device <= 0 else f"GPU {device} {stream}"
            name = f"CPU Thread {self._threads[track]}" if track in self._threads else on_gpu
            yield _metadata("thread_name", self._lane(track), {"name": name})
            yield _metadata("thread_sort_index", self._lane(track), {"sort_index": self._lane(track)})

    def _slices(self, only: FrameKind | None = None) -> Iterator[dict[str, Any]]:
        call_stack, scope_ids = cache(self._call_stack), itertools.count(1)
        values = {} if only is not None else timed_values.of_slices(self._profile)
        slices = self._profile.slices
        on_gpu = self._profile.tracks.kind[slices.track] == TrackKind.GPU_STREAM
        is_launch = ~on_gpu & (slices.correlation != 0)
        columns = (slices.start_ns, slices.duration_ns, slices.node, slices.track, is_launch)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (start_ns, duration_ns, node, track, is_call) in enumerate(rows):
            kind = FrameKind(int(self._kinds[node]))
            if is_call or kind not in _CATEGORIES or only not in (None, kind):
                continue
            stack = call_stack(node)
            metrics = values.get(row, {})
            arguments: dict[str, Any] = {"call_stack": stack}
            if kind is FrameKind.SCOPE:
                arguments["scope_id"] = next(scope_ids)
            if metrics or (kind is FrameKind.KERNEL and only is None):
                arguments["metrics"] = metrics
            yield {
                "name": stack[-1] + _shown(metrics),
                "cat": "metric" if metrics else _CATEGORIES[kind],
                "ph": "X",
                "ts": self._us(start_ns),
                "dur": duration_ns / 1000,
                "pid": 0,
                "tid": self._lane(track),
                "args": arguments,
            }

    def _arrows(self) -> Iterator[dict[str, Any]]:
        flows, slices = self._profile.flows, self._profile.slices
        for number, (source, target) in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True)):
            common = {"name": "launch->kernel", "cat": "flow", "id": number, "pid": 0}
            for phase, row, more in (("s", source, {}), ("f", target, {"bp": "e"})):
                place = {"ts": self._us(int(slices.start_ns[row])), "tid": self._lane(int(slices.track[row]))}
                yield {**common, "ph": phase, **place, **more}

    def _call_stack(self, node: NodeId) -> list[str]:
        tree = self._profile.tree
        return ["ROOT", *(tree.label(step) for step in tree.path(node)[1:])]

    def _lane(self, track: int) -> int:
        if track in self._threads:
            return self._threads[track]
        tracks = self._profile.tracks
        stream = int(tracks.stream[track])
        return _FIRST_STREAM_LANE + max(int(tracks.device[track]), 0) * _LANES_PER_DEVICE + stream

    def _us(self, time_ns: int) -> float:
        return (time_ns - self.base_ns) / 1000


def _thread_numbers(profile: Profile) -> dict[int, int]:
    """Numbers of the tracks that are threads, in the order in which they first did something."""
    slices, tracks = profile.slices, profile.tracks
    by_begin = slices.track[np.argsort(slices.start_ns, kind="stable")].tolist()
    order = dict.fromkeys([*by_begin, *range(len(tracks))])
    threads = [track for track in order if tracks.kind[track] != TrackKind.GPU_STREAM]
    return {track: number for number, track in enumerate(threads)}


def _shown(metrics: dict[str, str]) -> str:
    """What Proton adds to the name of a scope that has metrics."""
    return f": {', '.join(f'<{name}, {value}>' for name, value in metrics.items())}" if metrics else ""


def _metadata(name: str, lane: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": 0, "tid": lane, "args": values}
