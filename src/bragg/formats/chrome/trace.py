"""Chrome trace: one JSON document of events, opened by Perfetto, chrome://tracing and others.

Process ids of the document stand for a host process, or for one of its devices; thread ids for its tracks. Both start
at 1: viewers give no lane to 0. Times are microseconds since the first slice, with three decimals.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.chrome.reader import is_chrome_trace, read
from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.timelines.lanes import lanes, require_slices
from bragg.model import FrameKind, Profile
from bragg.model.ids import NodeId
from bragg.model.sample_stacks import with_sample_stacks

__all__ = ["FORMAT", "read", "write"]


def write(profile: Profile, path: Path) -> None:
    """Write slices, arrows from launches to what they caused, and counters; compressed where the name ends in `.gz`.

    Raises:
        UsageError: The profile has no slices.
        BadFile: The file cannot be written.
    """
    require_slices(profile)
    profile = with_sample_stacks(profile)
    document = _Document(profile)
    header = {"displayTimeUnit": "ns", "baseTimeNanoseconds": document.origin_ns, "otherData": profile.meta}
    with new_file(path) as plain, gzip.open(plain, "wb", 6) if path.suffix == ".gz" else nullcontext(plain) as file:
        file.write(json.dumps(header)[:-1].encode() + b',"traceEvents":[')
        separator = "\n"
        for events in (document.metadata(), document.slices(), document.flows(), document.counters()):
            for event in events:
                file.write(f"{separator}{event}".encode())
                separator = ",\n"
        file.write(b"\n]}\n")


class _Document:
    """The events as text."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.origin_ns = int(profile.slices.start_ns.min())
        tracks = profile.tracks
        groups: dict[tuple[int, int], int] = {}  # the first track of each
        for track, group in enumerate(zip(tracks.unique_process.tolist(), tracks.device.tolist(), strict=True)):
            groups.setdefault(group, track)
        self._pid_of = {group: pid for pid, group in enumerate(groups, start=1)}
        self._groups = groups
        self._lanes = list(lanes(profile))
        # Where the events of each lane stand.
        self._places = [f'"pid":{self._pid(lane.track)},"tid":{tid}' for tid, lane in enumerate(self._lanes, start=1)]
        lane_of_row = np.empty(len(profile.slices), np.int64)
        for number, lane in enumerate(self._lanes):
            lane_of_row[lane.rows] = number
        # By slice, as lists: a million look-ups in an array would take a second.
        self._start_ns = (profile.slices.start_ns - self.origin_ns).tolist()
        self._place_of_row = [self._places[lane] for lane in lane_of_row.tolist()]

    def metadata(self) -> Iterator[str]:
        for (process, device), pid in self._pid_of.items():
            label = self._profile.tracks.process_label(self._groups[process, device])
            name = label + (f": GPU {device}" if device >= 0 else "")
            yield _metadata("process_name", f'"pid":{pid}', {"name": name})
            yield _metadata("process_sort_index", f'"pid":{pid}', {"sort_index": pid})
        for number, (place, lane) in enumerate(zip(self._places, self._lanes, strict=True)):
            yield _metadata("thread_name", place, {"name": lane.label(self._profile.tracks)})
            yield _metadata("thread_sort_index", place, {"sort_index": number})

    def slices(self) -> Iterator[str]:
        slices = self._profile.slices
        what = cache(self._what)
        columns = (self._start_ns, slices.duration_ns.tolist(), slices.node.tolist(), self._place_of_row)
        for start_ns, duration_ns, node, place in zip(*columns, strict=True):
            yield f'{{"ph":"X",{what(node)},"ts":{_us(start_ns)},"dur":{_us(duration_ns)},{place}}}'

    def flows(self) -> Iterator[str]:
        flows = self._profile.flows
        for number, (source, target) in enumerate(
            zip(flows.source.tolist(), flows.target.tolist(), strict=True), start=1
        ):
            yield f'{{"ph":"s","id":{number},{self._flow_end(source)}}}'
            yield f'{{"ph":"f","bp":"e","id":{number},{self._flow_end(target)}}}'

    def counters(self) -> Iterator[str]:
        tracks, counters = self._profile.tracks, self._profile.counters
        time = (counters.time_ns - self.origin_ns).tolist()
        for time_ns, track, value in zip(time, counters.track.tolist(), counters.value.tolist(), strict=True):
            name = _json(tracks.label(track))
            yield f'{{"ph":"C","name":{name},"pid":{self._pid(track)},"ts":{_us(time_ns)},"args":{{"value":{value}}}}}'

    def _pid(self, track: int) -> int:
        tracks = self._profile.tracks
        return self._pid_of[int(tracks.unique_process[track]), int(tracks.device[track])]

    def _what(self, node: NodeId) -> str:
        """Name, category and call path of a slice."""
        tree = self._profile.tree
        path = " > ".join(tree.label(above) for above in tree.path(node)[1:-1])
        category = FrameKind(tree.kind[node]).name.lower()
        return f'"name":{_json(tree.label(node))},"cat":"{category}","args":{{"call_path":{_json(path)}}}'

    def _flow_end(self, row: int) -> str:
        return f'"name":"launch","cat":"flow","ts":{_us(self._start_ns[row])},{self._place_of_row[row]}'


def _metadata(name: str, place: str, values: dict[str, Any]) -> str:
    return f'{{"ph":"M","name":"{name}",{place},"args":{_json(values)}}}'


def _json(value: Any) -> str:
    # Perfetto shows an escaped letter as its escape.
    return json.dumps(value, ensure_ascii=False)


def _us(time_ns: int) -> str:
    whole, rest = divmod(time_ns, 1000)
    return f"{whole}.{rest:03d}"


FORMAT = Format(
    ".chrome.json",
    "Chrome trace, one JSON document",
    next_step="open it in Perfetto or chrome://tracing",
    sniff=is_chrome_trace,
    read=read,
    write=write,
    compresses=True,
)
