"""speedscope JSON: a flame graph for each metric, and for a trace a timeline for each track.

All of them are "sampled" profiles: a list of stacks, outermost frame first, and the weight of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.speedscope.reader import is_speedscope, read
from bragg.formats.timelines.lanes import lanes
from bragg.model import CallTree, FrameTable, Metric, MetricKind, Profile, SliceTable
from bragg.model.ids import ROOT, NodeId
from bragg.model.table import Int64Array

__all__ = ["FORMAT", "read", "write"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "B": "bytes"}
_IDLE = -1


def write(profile: Profile, path: Path) -> None:
    """Write the metrics, the main one first, and the tracks.

    Raises:
        UsageError: The profile holds no time.
        BadFile: The file cannot be written.
    """
    main = profile.metric(profile.main_metric)
    others = [item for item in profile.metrics.values() if item.kind is MetricKind.INCLUSIVE and item is not main]
    shown = [main, *(item for item in others if item.own.any())]
    header = {"$schema": _SCHEMA, "exporter": "bragg", "shared": {"frames": _frames(profile.tree.frames)}}
    stacks = _Stacks(profile.tree)
    with new_file(path) as file:
        file.write(json.dumps(header)[:-1].encode() + b',"profiles":[\n')
        file.write(",\n".join(_flame_graph(profile, item, stacks) for item in shown).encode())
        file.writelines(f",\n{timeline}".encode() for timeline in _timelines(profile, stacks))
        file.write(b"]}\n")


class _Stacks:
    """The call path of each node as text, made at first use."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self.text = cache(self._text)

    def _text(self, node: NodeId) -> str:
        # The root says nothing and would be a bar over the whole width.
        path = [] if node == _IDLE else self._tree.frame[self._tree.path(node)[1:] or [ROOT]].tolist()
        return json.dumps(path, separators=(",", ":"))

    def sampled(self, name: str, unit: str, nodes: Int64Array, weights: NDArray[Any]) -> str:
        """One profile of the document: nodes [samples] and the weight of each [samples]."""
        header = {"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": weights.sum().item()}
        samples = ",".join(map(self.text, nodes.tolist()))
        return f'{json.dumps(header)[:-1]},"samples":[{samples}],"weights":{json.dumps(weights.tolist())}}}'


def _frames(frames: FrameTable) -> list[dict[str, Any]]:
    """Names and places; lines of no known function are named by their place, as the page shows names alone."""
    return [
        {"name": name}
        if not file
        else {"name": name or f"{PurePosixPath(file).name}:{line}", "file": file, "line": line}
        for name, file, line in zip(frames.name, frames.file, frames.line.tolist(), strict=True)
    ]


def _flame_graph(profile: Profile, metric: Metric, stacks: _Stacks) -> str:
    nodes = _heaviest_first(profile.tree, profile.inclusive(metric.name))
    nodes = nodes[metric.own[nodes] > 0]
    return stacks.sampled(metric.name, _UNITS.get(metric.unit, "none"), nodes, metric.own[nodes])


def _heaviest_first(tree: CallTree, inclusive: NDArray[Any]) -> Int64Array:
    """The nodes depth first, of siblings the heaviest first."""
    by_parent = np.lexsort((inclusive, tree.parent))[1:]
    first = np.searchsorted(tree.parent[by_parent], np.arange(len(tree) + 1)).tolist()
    lightest_first = by_parent.tolist()
    order: list[int] = []
    pending = [0]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(lightest_first[first[node] : first[node + 1]])
    return np.array(order, np.int64)


def _timelines(profile: Profile, stacks: _Stacks) -> Iterator[str]:
    for lane in lanes(profile):
        nodes, weights = _stretches(profile.slices.take(lane.rows))
        yield stacks.sampled(lane.label(profile.tracks), "nanoseconds", nodes, weights)


def _stretches(slices: SliceTable) -> tuple[Int64Array, Int64Array]:
    """What ran innermost, and for how long, from the first slice to the last: nodes, and ns; node -1 is idle."""
    start, end = slices.start_ns, slices.start_ns + slices.duration_ns
    found: list[tuple[int, int]] = []
    enclosing: list[tuple[int, int]] = []
    now = int(start[0])
    slice_rows = zip(start.tolist(), end.tolist(), slices.node.tolist(), strict=True)
    for begin, stop, node in (*slice_rows, (int(end.max()), 0, _IDLE)):
        while enclosing and enclosing[-1][0] <= begin:
            inner_end, inner = enclosing.pop()
            found.append((inner, inner_end - now))
            now = inner_end
        found.append((enclosing[-1][1] if enclosing else _IDLE, begin - now))
        now = begin
        enclosing.append((stop, node))
    stretches = np.array(found, np.int64)
    nodes, weights = stretches[stretches[:, 1] > 0].T
    return nodes, weights


FORMAT = Format(
    ".speedscope.json",
    "speedscope flame graphs and timelines",
    next_step="open it in speedscope",
    sniff=is_speedscope,
    read=read,
    write=write,
)
