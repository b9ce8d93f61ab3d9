"""Profiles as text, for tests.

    root
      forward
        train.py:12@step
          matmul 12us x3

One node a line, two spaces a level. After the label may follow, in any order: `12us` own GPU time (`ns`, `us`, `ms`,
`s`), `x3` GPU count (1 when a time is given alone), `host=3ms` own host time, `sync=1ms` and `wait=1ms` what waits,
`hostx2` times entered, `bytes=64`, `#operator` the frame kind, `@1` the device. A node with GPU time is a kernel,
`file:line@function` is Python code, anything else is a scope.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = r"(\d+)(ns|us|ms|s)"
_TOKENS = {
    "gpu_time": re.compile(_TIME + "$"),
    "gpu_count": re.compile(r"x(\d+)$"),
    "host_time": re.compile(f"host={_TIME}$"),
    "sync_time": re.compile(f"sync={_TIME}$"),
    "wait_time": re.compile(f"wait={_TIME}$"),
    "host_count": re.compile(r"hostx(\d+)$"),
    "gpu_bytes": re.compile(r"bytes=(\d+)$"),
    "kind": re.compile(r"#(\w+)$"),
    "device": re.compile(r"@(\d+)$"),
}
_CODE = re.compile(r"(?P<file>[^@]+):(?P<line>\d+)@(?P<name>.+)$")
_METRICS = {
    "gpu_time": ("ns", MetricKind.INCLUSIVE),
    "gpu_count": ("1", MetricKind.INCLUSIVE),
    "gpu_bytes": ("B", MetricKind.INCLUSIVE),
    "host_time": ("ns", MetricKind.INCLUSIVE),
    "sync_time": ("ns", MetricKind.INCLUSIVE),
    "wait_time": ("ns", MetricKind.INCLUSIVE),
    "host_count": ("1", MetricKind.EXCLUSIVE),
}


@dataclass
class _Node:
    label: str
    parent: int
    values: dict[str, int] = field(default_factory=dict)
    kind: FrameKind | None = None
    device: int = -1

    def frame(self) -> tuple[int, str, str, int, int]:
        code = _CODE.match(self.label)
        kind = self.kind
        if kind is None:
            kind = FrameKind.ROOT if self.parent < 0 else FrameKind.SCOPE
            kind = FrameKind.KERNEL if "gpu_time" in self.values else FrameKind.PYTHON if code else kind
        if code:
            return kind, code["name"], code["file"], int(code["line"]), self.device
        return kind, self.label, "", 0, self.device


def profile_from_text(text: str) -> Profile:
    """The profile that a text draws; only metrics that occur in the text are in it."""
    nodes: list[_Node] = []
    open_nodes: list[int] = []
    for text_line in filter(str.strip, text.splitlines()):
        depth = (len(text_line) - len(text_line.lstrip())) // 2
        del open_nodes[depth:]
        nodes.append(_parse_line(text_line, open_nodes[-1] if open_nodes else -1))
        open_nodes.append(len(nodes) - 1)
    rows = [node.frame() for node in nodes]
    unique = {row: index for index, row in enumerate(dict.fromkeys(rows))}
    kind, name, file, line, device = (list(column) for column in zip(*unique, strict=True))
    frames = FrameTable(np.array(kind, np.uint8), name, file, np.array(line, np.int32), np.array(device, np.int32))
    parent = np.array([node.parent for node in nodes], np.int32)
    tree = CallTree(parent, np.array([unique[row] for row in rows], np.int32), frames)
    profile = Profile({}, tree, _metrics(nodes))
    profile.check()
    return profile


def tree_to_text(profile: Profile) -> str:
    """The text that `profile_from_text` would read the tree and its additive metrics from, without frame kinds."""
    lines: list[str] = []
    pending = [0]
    while pending:
        node = pending.pop()
        pending.extend(profile.tree.children(node).tolist()[::-1])
        words = ["  " * int(profile.tree.depth[node]) + profile.tree.label(node), *_words(profile, node)]
        lines.append(" ".join(words))
    return "\n".join(lines)


def time_text(time_ns: int) -> str:
    """A time in the largest unit that needs no fraction."""
    unit = max((unit for unit, size in _UNITS_NS.items() if time_ns % size == 0), key=_UNITS_NS.__getitem__)
    return f"{time_ns // _UNITS_NS[unit]}{unit}"


def _parse_line(line: str, parent: int) -> _Node:
    words = line.split()
    node = _Node("", parent)
    while len(words) > 1 and (match := _match(words[-1])):
        key, found = match
        words.pop()
        if key == "kind":
            node.kind = FrameKind[found[1].upper()]
        elif key == "device":
            node.device = int(found[1])
        else:
            node.values[key] = int(found[1]) * (_UNITS_NS[found[2]] if key.endswith("time") else 1)
    if "gpu_time" in node.values:
        node.values.setdefault("gpu_count", 1)
    node.label = " ".join(words)
    return node


def _match(word: str) -> tuple[str, re.Match[str]] | None:
    found = ((key, pattern.match(word)) for key, pattern in _TOKENS.items())
    return next(((key, match) for key, match in found if match), None)


def _metrics(nodes: list[_Node]) -> dict[str, Metric]:
    used = [name for name in _METRICS if any(name in node.values for node in nodes)]
    columns = {name: np.array([node.values.get(name, 0) for node in nodes]) for name in used}
    return {name: Metric(name, *_METRICS[name], own) for name, own in columns.items()}


def _words(profile: Profile, node: int) -> list[str]:
    own = {name: int(metric.own[node]) for name, metric in profile.metrics.items() if name in _METRICS}
    words = []
    if own.get("gpu_time"):
        words.append(time_text(own["gpu_time"]))
        words += [f"x{own['gpu_count']}"] if own["gpu_count"] > 1 else []
    words += [f"bytes={own['gpu_bytes']}"] if own.get("gpu_bytes") else []
    words += [f"host={time_text(own['host_time'])}"] if own.get("host_time") else []
    words += [f"hostx{own['host_count']}"] if own.get("host_count") else []
    return words
