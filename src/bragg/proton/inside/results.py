"""What launches said, as Proton's tree and Chrome trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bragg.proton.inside.records import BlockRecords

__all__ = ["Launch", "Results"]

_KINDS = {"CUDA": "1", "HIP": "2"}  # as Proton numbers kinds of devices in these trees
_MAX_EVENTS = 2_000_000
_COLOURS = ("good", "bad", "terrible", "yellow", "olive", "generic_work", "thread_state_running", "rail_load")


@dataclass(frozen=True)
class Launch:
    """A launch with records.

    Attributes:
        path: Of the program's scopes, and the kernel last.
        scopes: Names by their numbers.
        parents: Number of the scope around a scope, by its number.
        units: Warps of all blocks.
        device: Its ordinal.
    """

    path: tuple[str, ...]
    scopes: Mapping[int, str]
    parents: Mapping[int, int]
    units: int
    device: int

    def below(self, scope: int) -> tuple[str, ...]:
        """Names of the scopes around a scope, and its own."""
        names = [self.scopes.get(scope, f"scope {scope}")]
        seen = {scope}
        while (parent := self.parents.get(scope)) is not None and parent not in seen:
            seen.add(scope := parent)
            names.append(self.scopes.get(scope, f"scope {scope}"))
        return tuple(reversed(names))


@dataclass
class Results:
    """What was measured in a session.

    Attributes:
        keeps_events: Each passage is kept, not only sums.
        kind: Of the devices: `CUDA` or `HIP`.
        devices: Facts of each device that worked, by ordinal.
        left_out: Passages that were not kept as there were too many.
    """

    keeps_events: bool
    kind: str = "CUDA"
    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: int = 0
    _cycles: dict[tuple[tuple[str, ...], int], list[float]] = field(default_factory=dict)
    _launches: list[tuple[Launch, list[BlockRecords]]] = field(default_factory=list)
    _n_events: int = 0

    def add(self, launch: Launch, blocks: Sequence[BlockRecords]) -> None:
        """Add what a launch said."""
        if self.keeps_events:
            n_passages = sum(len(block.passages) for block in blocks)
            if self._n_events + n_passages > _MAX_EVENTS:
                self.left_out += n_passages
                return
            self._n_events += n_passages
            self._launches.append((launch, list(blocks)))
            return
        for block in blocks:
            for passage in block.passages:
                key = (*launch.path, *launch.below(passage.scope)), launch.device
                sums = self._cycles.setdefault(key, [0, 0.0])
                sums[0] += passage.end - passage.start
                sums[1] += (passage.end - passage.start) / max(launch.units, 1)

    def tree(self) -> list[Any]:
        """The call tree and the devices, as JSON values."""
        root = _node("ROOT")
        for (path, device), (cycles, normalized) in self._cycles.items():
            node = root
            for name in path:
                found = next((child for child in node["children"] if child["frame"]["name"] == name), None)
                if found is None:
                    node["children"].append(found := _node(name))
                node = found
            metrics = node["metrics"]
            metrics["cycles"] = metrics.get("cycles", 0) + cycles
            metrics["normalized_cycles"] = metrics.get("normalized_cycles", 0.0) + normalized
            metrics["device_id"], metrics["device_type"] = str(device), _KINDS[self.kind]
        if self._cycles:
            root["metrics"] = {"cycles": 0, "normalized_cycles": 0.0}
        return [root, {self.kind: self.devices} if self.devices else {}]

    def trace(self) -> dict[str, Any]:
        """Chrome's trace events: cycles stand for nanoseconds, as they do in Proton's traces."""
        starts = [block.start_ns for _, blocks in self._launches for block in blocks]
        base_ns = min(starts, default=0)
        events = [
            event for launch, blocks in self._launches for block in blocks for event in _events(launch, block, base_ns)
        ]
        return {"displayTimeUnit": "ns", "traceEvents": events}


def _node(name: str) -> dict[str, Any]:
    return {"frame": {"name": name, "type": "function"}, "metrics": {}, "children": []}


def _events(launch: Launch, block: BlockRecords, base_ns: int) -> list[dict[str, Any]]:
    kernel = launch.path[-1]
    first = min((passage.start for passage in block.passages), default=0)
    ordered = sorted(block.passages, key=lambda each: (each.warp, each.start, -each.end))
    return [
        {
            "name": launch.below(passage.scope)[-1],
            "cat": kernel,
            "ph": "X",
            "cname": _COLOURS[passage.scope % len(_COLOURS)],
            "pid": f"{kernel} Core{block.multiprocessor} CTA{block.block}",
            "tid": f"warp {passage.warp} (line {line})",
            "ts": (block.start_ns - base_ns + passage.start - first) / 1000,
            "dur": (passage.end - passage.start) / 1000,
            "args": {
                "Frequency (MHz)": 1000.0,
                "Init Time (ns)": block.start_ns - base_ns,
                "Finalization Time (ns)": block.end_ns - block.last_ns,
                "Post Final Time (ns)": block.end_ns - base_ns,
                "call_stack": ["ROOT", *launch.path],
            },
        }
        for passage, line in zip(ordered, _lines(ordered), strict=True)
    ]


def _lines(ordered: Sequence[Any]) -> list[int]:
    """A line of its warp for each passage: those that overlap without one being inside the other differ."""
    open_until: dict[int, list[list[int]]] = {}
    lines = []
    for passage in ordered:
        own = open_until.setdefault(passage.warp, [])
        for ends in own:
            while ends and ends[-1] <= passage.start:
                ends.pop()
        free = next((line for line, ends in enumerate(own) if not ends or passage.end <= ends[-1]), len(own))
        own[free : free + 1] = [[*(own[free] if free < len(own) else ()), passage.end]]
        lines.append(free)
    return lines
