"""speedscope JSON: a flame graph for each metric, and for a trace a timeline for each track.

All of them are "sampled" profiles: a list of stacks, outermost frame first, and the weight of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.timeline import lanes
from bragg.model import CallTree, FrameTable, Metric, MetricKind, Profile, SliceTable
from bragg.model.table import Int64Array

__all__ = ["FORMAT", "write"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "B": "bytes", "1": "none"}
_IDLE = -1


def write(profile: Profile, path: Path) -> None:
    """Write the metrics, the main one first, and the tracks.

    Raises:
        UsageError: The profile holds no time.
        BadFile: The file cannot be written.
    """
    main = profile.metric(profile.main_metric)
    others = [item for item in profile.metrics.values() if item.kind is MetricKind.INCLUSIVE and item is not main]
    with new_file(path) as file:
        header = {"$schema": _SCHEMA, "exporter": "bragg", "shared": {"frames": _frames(profile.tree.frames)}}
        file.write(json.dumps(header)[:-1].encode() + b',"profiles":[')
        file.write(_flame_graph(profile, main).encode())
        file.writelines(f",\n{_flame_graph(profile, item)}".encode() for item in others if item.own.any())
        file.writelines(f",\n{timeline}".encode() for timeline in _timelines(profile))
        file.write(b"]}\n")


def _frames(frames: FrameTable) -> list[dict[str, Any]]:
    return [
        {"name": name} if not file else {"name": name, "file": file, "line": line}
        for name, file, line in zip(frames.name, frames.file, frames.line.tolist(), strict=True)
    ]


def _flame_graph(profile: Profile, metric: Metric) -> str:
    nodes = _heaviest_first(profile.tree, profile.inclusive(metric.name))
    nodes = nodes[metric.own[nodes] > 0]
    return _sampled(profile.tree, metric.name, _UNITS[metric.unit], nodes, metric.own[nodes])


def _heaviest_first(tree: CallTree, inclusive: NDArray[Any]) -> Int64Array:
    """The nodes depth first, of siblings the heaviest first."""
    order: list[int] = []
    pending = [0]
    while pending:
        node = pending.pop()
        order.append(node)
        children = tree.children(node)
        pending.extend(children[np.argsort(inclusive[children], kind="stable")].tolist())
    return np.array(order, np.int64)


def _timelines(profile: Profile) -> Iterator[str]:
    for lane in lanes(profile):
        nodes, weights = _stretches(profile.slices.take(lane.rows))
        yield _sampled(profile.tree, lane.label(profile.tracks), "nanoseconds", nodes, weights)


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


def _sampled(tree: CallTree, name: str, unit: str, nodes: Int64Array, weights: NDArray[Any]) -> str:
    @cache
    def stack(node: int) -> str:
        # The root says nothing and would be a bar over the whole width.
        path = [] if node == _IDLE else tree.frame[tree.path(node)[1:] or [0]].tolist()
        return json.dumps(path, separators=(",", ":"))

    header = {"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": weights.sum().item()}
    samples = ",".join(map(stack, nodes.tolist()))
    return f'{json.dumps(header)[:-1]},"samples":[{samples}],"weights":{json.dumps(weights.tolist())}}}'


FORMAT = Format(".speedscope.json", "speedscope flame graphs and timelines", write=write)
