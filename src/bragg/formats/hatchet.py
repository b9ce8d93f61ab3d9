"""Hatchet JSON in the layout of Proton: a list of the call tree and the devices.

    [{"frame": {"name", "type"}, "metrics": {...}, "children": [...]}, {"CUDA": {"0": {"arch", "num_sms", ...}}}]

Nodes carry own values; the root's metrics are zeros whose names tell readers which metrics are inclusive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.model import MetricKind, Profile

__all__ = ["FORMAT", "write"]

# Metrics by the names that Proton's users know; others keep their own.
_NAMES = {"gpu_time": "time (ns)", "gpu_count": "count", "gpu_bytes": "bytes", "host_time": "cpu_time (ns)"}
_DEVICE_TYPE = "CUDA"
_DEVICE_FACTS = {
    "arch": "arch",
    "bus_width": "bus_width_bits",
    "clock_rate": "clock_khz",
    "memory_clock_rate": "memory_clock_khz",
    "num_sms": "num_sms",
}


def write(profile: Profile, path: Path) -> None:
    """Write the call tree.

    Raises:
        BadFile: The file cannot be written.
    """
    with new_file(path) as file:
        file.write(b"[")
        file.writelines(text.encode() for text in _tree_text(profile))
        file.write(f",\n{json.dumps(_device_info(profile))}]\n".encode())


def _device_info(profile: Profile) -> dict[str, dict[str, dict[str, Any]]]:
    devices = profile.meta.get("devices", [])
    facts = {
        str(ordinal): {name: device.get(ours) for name, ours in _DEVICE_FACTS.items()}
        for ordinal, device in enumerate(devices)
        if isinstance(device, dict)
    }
    return {_DEVICE_TYPE: facts} if facts else {}


def _tree_text(profile: Profile) -> Iterator[str]:
    """The tree as pieces of text, without recursion: call paths can be deeper than a JSON encoder follows."""
    tree = profile.tree
    names = [_json(tree.frames.label(frame)) for frame in range(len(tree.frames))]
    names[tree.frame[0]] = '"ROOT"'
    metrics = list(_metric_texts(profile))
    pending: list[int | None] = [0]
    before = ""
    while pending:
        node = pending.pop()
        if node is None:
            yield "]}"
            before = ",\n"
            continue
        frame = f'{{"name":{names[tree.frame[node]]},"type":"function"}}'
        yield f'{before}{{"frame":{frame},"metrics":{{{metrics[node]}}},"children":['
        before = ""
        pending.append(None)
        pending.extend(tree.children(node)[::-1].tolist())


def _metric_texts(profile: Profile) -> Iterator[str]:
    """Members of each node's metrics."""
    shown = {
        _json(_NAMES.get(metric.name, metric.name)): metric.own.tolist()
        for metric in profile.metrics.values()
        if metric.kind is MetricKind.INCLUSIVE
    }
    yield ",".join(f"{name}:{values[0]}" for name, values in shown.items())
    devices = profile.tree.frames.device[profile.tree.frame].tolist()
    for node in range(1, len(profile.tree)):
        members = [f"{name}:{values[node]}" for name, values in shown.items() if values[node]]
        if devices[node] >= 0:
            members.append(f'"device_id":"{devices[node]}","device_type":"{_DEVICE_TYPE}"')
        yield ",".join(members)


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


FORMAT = Format(".hatchet", "Hatchet JSON as Proton writes it", write=write)
