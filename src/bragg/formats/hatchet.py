"""Trees as Proton writes them, in JSON (`.hatchet`) and MessagePack (`.hatchet_msgpack`).

    [{"frame": {"name", "type"}, "metrics": {...}, "children": [...]}, {"CUDA": {"0": {"arch", "num_sms", ...}}}]

Nodes carry own values. The names of the root's metrics tell readers which metrics add up along call paths, so the root
has all of these, most of them zero, and no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings import msgpack
from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.proton.trees import DEVICE_FACTS, is_json_tree, is_msgpack_tree, read_json, read_msgpack
from bragg.model import Metric, MetricKind, Profile
from bragg.model.table import BoolArray, Int64Array

# Metrics by the names that Proton's users know; others are `name (unit)`.
_NAMES = {"gpu_time": "time (ns)", "gpu_count": "count", "bytes": "bytes"}
_HOST_TIME = "cpu_time (ns)"
# Proton has nothing of the kind; they follow from what the recorder measured.
_LEFT_OUT = ("gpu_time_min", "gpu_time_max", "host_count", "marker_time", "marker_count")
_NO_UNIT = ("", "1")
_ELEMENT = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]$")


def to_tree(profile: Profile) -> list[Any]:
    """The call tree and the devices that worked for it, as JSON values: what `triton.profiler.data.get` returns.

    Host time is `cpu_time (ns)`, unless the program measured a metric of that name.
    """
    tree = profile.tree
    names = tree.frames.labels()
    names[tree.frame[0]] = "ROOT"
    metrics = _metrics_of_nodes(profile)
    nodes: list[dict[str, Any]] = [
        {"frame": {"name": names[frame], "type": "function"}, "metrics": values, "children": []}
        for frame, values in zip(tree.frame.tolist(), metrics, strict=True)
    ]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            nodes[parent]["children"].append(nodes[node])
    return [nodes[0], _device_info(profile)]


def write(profile: Profile, path: Path) -> None:
    """Write the call tree as JSON.

    Raises:
        BadFile: The file cannot be written.
    """
    with new_file(path) as file:
        file.write(b"\n")
        file.writelines(text.encode("utf-8", "surrogatepass") for text in _json_texts(to_tree(profile)))


def write_msgpack(profile: Profile, path: Path) -> None:
    """Write the call tree as MessagePack.

    Raises:
        BadFile: The file cannot be written.
    """
    with new_file(path) as file:
        file.write(msgpack.encode(to_tree(profile)))


@dataclass(frozen=True, eq=False)
class _Written:
    """A metric of the file.

    Attributes:
        name: As Proton's users know it.
        is_vector: Its values are lists.
        columns: One metric, or the elements of the vector.
    """

    name: str
    is_vector: bool
    columns: list[Metric]

    @property
    def adds_up(self) -> bool:
        """Whether readers may add the values of descendants; of lists they cannot."""
        return not self.is_vector and self.columns[0].kind is MetricKind.INCLUSIVE

    def values(self) -> Iterator[tuple[int, Any]]:
        """Nodes with a value, and the value."""
        has_value = np.array([column.has_value for column in self.columns])
        nodes = np.flatnonzero(has_value.any(axis=0))
        rows = zip(*(_plain(column, nodes) for column in self.columns), strict=True)
        for node, row in zip(nodes.tolist(), rows, strict=True):
            yield node, list(row[: self._length(has_value[:, node])]) if self.is_vector else row[0]

    def _length(self, has_value: BoolArray) -> int:
        """Elements of a node's vector; all where zero may be a value that was not counted."""
        is_counted = all(column.counted is not None for column in self.columns)
        return int(np.flatnonzero(has_value)[-1]) + 1 if is_counted else len(self.columns)


def _metrics_of_nodes(profile: Profile) -> list[dict[str, Any]]:
    tree = profile.tree
    written = _written_metrics(profile)
    found: list[dict[str, Any]] = [{} for _ in range(len(tree))]
    for metric in written:
        for node, value in metric.values():
            found[node][metric.name] = value
    devices = tree.frames.device[tree.frame]
    for node in np.flatnonzero(devices >= 0).tolist():
        device = int(devices[node])
        found[node] |= {"device_id": str(device), "device_type": _device_type(profile, device)}
    found[0] = {metric.name: found[0].get(metric.name, 0) for metric in written if metric.adds_up}
    return found


def _written_metrics(profile: Profile) -> list[_Written]:
    """The metrics by the names of the file; the elements of a vector are together."""
    written: dict[tuple[str, bool], _Written] = {}
    for metric in profile.metrics.values():
        if metric.name in _LEFT_OUT or (metric.name == "host_time" and "cpu_time" in profile.metrics):
            continue
        element = _ELEMENT.match(metric.name)
        name = _name(element["name"] if element else metric.name, metric.unit)
        if (name, False) in written and not element:
            name = metric.name
        written.setdefault((name, bool(element)), _Written(name, bool(element), [])).columns.append(metric)
    return list(written.values())


def _name(name: str, unit: str) -> str:
    if name == "host_time":
        return _HOST_TIME
    return _NAMES.get(name) or (name if unit in _NO_UNIT else f"{name} ({unit})")


def _plain(metric: Metric, nodes: Int64Array) -> list[float | int | None]:
    """Values as JSON has them: null for what is not finite. Properties, which are kept as floats, may be whole."""
    own = metric.own[nodes]
    values = [value if known else None for value, known in zip(own.tolist(), np.isfinite(own).tolist(), strict=True)]
    if metric.kind is not MetricKind.PROPERTY:
        return values
    return [int(value) if value is not None and value.is_integer() else value for value in values]


def _device_info(profile: Profile) -> dict[str, dict[str, dict[str, Any]]]:
    """Facts by type and number of the devices in the tree."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    devices = profile.tree.frames.device[profile.tree.frame]
    for device in np.unique(devices[devices >= 0]).tolist():
        facts = _facts(profile, device)
        if facts:
            shown = {name: facts.get(ours) for name, ours in DEVICE_FACTS.items()}
            found.setdefault(_device_type(profile, device), {})[str(device)] = shown
    return found


def _device_type(profile: Profile, device: int) -> str:
    facts = _facts(profile, device)
    return str(facts.get("device_type") or ("HIP" if str(facts.get("arch")).startswith("gfx") else "CUDA"))


def _facts(profile: Profile, device: int) -> Mapping[str, Any]:
    devices = profile.run.devices
    return devices[device] if device < len(devices) else {}


def _json_texts(value: Any) -> Iterator[str]:
    """JSON with sorted keys, each value on a line, without recursion.

    Lines are not indented: of deep call paths that would be nine tenths of the file.
    """
    pending: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter([("", value)]), "")]
    while pending:
        members, end = pending[-1]
        for before, item in members:
            if item and isinstance(item, (dict, list)):
                brackets = "{}" if isinstance(item, dict) else "[]"
                yield before + brackets[0]
                pending.append((_members(item), f"\n{brackets[1]}"))
                break
            yield before + _json(item)
        else:
            yield end
            pending.pop()


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """The items of a value, each with the text in front of it."""
    separator = "\n"
    items = (
        ((f"{_json(key)}: ", value[key]) for key in sorted(value))
        if isinstance(value, dict)
        else (("", item) for item in value)
    )
    for name, item in items:
        yield separator + name, item
        separator = ",\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_NEXT_STEP = "proton-viewer --list {file}"
FORMAT = Format(
    ".hatchet",
    "call tree as Proton writes it, JSON",
    next_step=_NEXT_STEP,
    sniff=is_json_tree,
    read=read_json,
    write=write,
)
MSGPACK_FORMAT = Format(
    ".hatchet_msgpack",
    "call tree as Proton writes it, MessagePack",
    next_step=_NEXT_STEP,
    sniff=is_msgpack_tree,
    read=read_msgpack,
    write=write_msgpack,
)
