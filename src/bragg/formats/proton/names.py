"""What names in Proton's files stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from bragg.formats.limits import Limits, next_depth
from bragg.model import CallTree, Combine, FrameKind, FrameTable, Metric, MetricKind

_CODE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})@(?P<function>.+)", re.DOTALL)
# Frames that Proton puts into call paths itself.
_STATES = ("<captured_at>", "<metric>", "__proton_launch_metadata")
_METRIC = re.compile(
    r"(?P<name>.+?)(?: \((?!(?:inc|exc|pty)\))(?P<unit>[^()]*)\))?(?: ?\((?P<kind>inc|exc|pty)\))?", re.DOTALL
)
_KINDS = {"exc": MetricKind.EXCLUSIVE, "pty": MetricKind.PROPERTY}
_KNOWN = {"time (ns)": ("gpu_time", "ns"), "count": ("gpu_count", "1")}


def frame_kind(name: str) -> FrameKind:
    """Kind of a frame; kernels are recognised by their metrics instead."""
    if name.startswith(_STATES):
        return FrameKind.STATE
    return FrameKind.PYTHON if _CODE.fullmatch(name) else FrameKind.SCOPE


@dataclass(frozen=True)
class MetricName:
    """A metric as Proton's users write it: `name (unit)(kind)`.

    Attributes:
        name: Without the rest; bragg's own name for what bragg measures too.
        unit: Empty when there is none.
        kind: None when it is not said.
    """

    name: str
    unit: str
    kind: MetricKind | None = None


@cache
def metric_name(key: str) -> MetricName:
    """The parts of a metric's name."""
    if key in _KNOWN:
        return MetricName(*_KNOWN[key], MetricKind.INCLUSIVE)
    parts = _METRIC.fullmatch(key)
    if parts is None:
        return MetricName(key, "")
    kind = _KINDS.get(parts["kind"], MetricKind.INCLUSIVE) if parts["kind"] else None
    return MetricName(parts["name"], parts["unit"] or "", kind)


class TreeBuilder:
    """A call tree that grows node by node."""

    def __init__(self) -> None:
        self._parent = [-1]
        self._frame = [0]
        self._depth = [0]
        self._frames: dict[tuple[int, str, str, int, int], int] = {(FrameKind.ROOT, "root", "", 0, -1): 0}
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def add(self, parent: int, name: str, kind: FrameKind, device: int = -1) -> int:
        """A new node below `parent`.

        Raises:
            ValueError: It is too deep.
        """
        self._depth.append(next_depth(self._depth[parent]))
        self._parent.append(parent)
        self._frame.append(self._frame_id(name, kind, device))
        return len(self._parent) - 1

    def child(self, parent: int, name: str, kind: FrameKind, device: int = -1) -> int:
        """The node with this frame below `parent`, a new one when there is none."""
        key = parent, self._frame_id(name, kind, device)
        if key not in self._children:
            self._children[key] = self.add(parent, name, kind, device)
        return self._children[key]

    def tree(self) -> CallTree:
        """The tree so far."""
        kind, name, file, line, device = (list(column) for column in zip(*self._frames, strict=True))
        frames = FrameTable(np.array(kind), name, file, np.array(line), np.array(device))
        return CallTree(np.array(self._parent), np.array(self._frame), frames)

    def _frame_id(self, name: str, kind: FrameKind, device: int) -> int:
        code = _CODE.fullmatch(name) if kind in (FrameKind.PYTHON, FrameKind.LINE) else None
        place = (code["function"], code["file"], int(code["line"])) if code else (name, "", 0)
        return self._frames.setdefault((kind, *place, device), len(self._frames))


@dataclass(eq=False)
class MetricColumns:
    """Values at nodes, by metric, as they are read.

    Attributes:
        values: By the name in the file, the value of each node; values at one node are added, of properties the last
            one stays.
        texts: Names of metrics whose values are text, which a profile cannot hold.
    """

    values: dict[str, dict[int, int | float]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)

    def add(self, node: int, key: str, value: Any) -> None:
        """Add a number, or the numbers of a list; a number that is none (NaN, infinite, null) counts as absent."""
        if value is None:
            return
        if isinstance(value, list):
            for index, element in enumerate(value):
                self.add(node, _element(key, index), element)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            self.texts.add(key)
        elif math.isfinite(value):
            column = self.values.setdefault(key, {})
            adds_up = metric_name(key).kind is not MetricKind.PROPERTY
            column[node] = column.get(node, 0) + value if adds_up else value

    def metrics(self, n_nodes: int, kinds: Mapping[str, MetricKind], limits: Limits) -> dict[str, Metric]:
        """The metrics of a profile.

        Args:
            n_nodes: Nodes of the tree.
            kinds: By the name in the file, where that name itself does not tell.
            limits: Of the file.

        Raises:
            ValueError: There are too many.
        """
        limits.check_metrics(len(self.values), n_nodes)
        found: dict[str, Metric] = {}
        for key, column in self.values.items():
            parts = metric_name(key)
            kind = parts.kind or kinds.get(key, MetricKind.INCLUSIVE)
            name = key if parts.name in found else parts.name
            found[name] = _metric(MetricName(name, parts.unit, kind), column, n_nodes)
        return found


def _element(key: str, index: int) -> str:
    """The name of one element of a vector, `name[0] (unit)`."""
    name, separator, rest = key.partition(" (")
    return f"{name}[{index}]{separator}{rest}"


def _metric(name: MetricName, column: dict[int, int | float], n_nodes: int) -> Metric:
    is_property = name.kind is MetricKind.PROPERTY
    whole = all(isinstance(value, int) for value in column.values()) and sum(map(abs, column.values())) < 2**63
    own = np.full(n_nodes, np.nan if is_property else 0, np.int64 if whole and not is_property else np.float64)
    own[list(column)] = list(column.values())
    combine = Combine.MAX if is_property else Combine.SUM
    return Metric(name.name, name.unit, name.kind or MetricKind.INCLUSIVE, own, combine)
