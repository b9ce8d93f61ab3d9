"""Trees that Proton wrote: the structure of `hatchet`, of every release from 3.4 on.

The root's metrics name those that add up along call paths. Releases before 3.7 name all of them, later ones only what
the profiler itself measured. There flops and bytes add up because that is what they are for, and other metrics are
taken to, because that is Proton's default; `meta["assumed_inclusive"]` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bragg.errors import BadFile
from bragg.formats import format as format_
from bragg.formats.encodings import deep_json, msgpack
from bragg.formats.files import read_content
from bragg.formats.format import unknown_format
from bragg.formats.limits import Limits
from bragg.formats.proton.names import MetricColumns, TreeBuilder, frame_kind, metric_name
from bragg.model import FrameKind, MetricKind, Profile

# Facts about a device: Proton's name, and that of `meta["devices"]`.
DEVICE_FACTS = {
    "arch": "arch",
    "bus_width": "bus_width_bits",
    "clock_rate": "clock_khz",
    "memory_clock_rate": "memory_clock_khz",
    "num_sms": "num_sms",
}
_DEVICE = ("device_id", "device_type")
# Numbers instead of names are those of instrumented kernels.
_DEVICE_TYPES = {"0": "HIP", "1": "CUDA"}
_MAX_DEVICES = 4096
# What releases from 3.7 on name at the root: kernels, instruction samples, cycles.
_MEASURED = re.compile(r"time \(ns\)|count|(normalized_)?cycles|num_(stalled_)?samples|stalled_\w+")
_ROOFLINE = re.compile(r"flops(8|16|32|64)?|bytes")
_SAMPLES = "num_samples"
_CPU_TIME, _HOST_TIME = "cpu_time (ns)", "host_time (ns)"


def is_json_tree(start: bytes) -> bool:
    """Whether a file may be a tree in JSON."""
    return start.lstrip().startswith(b"[") and b'"frame"' in start


def is_msgpack_tree(start: bytes) -> bool:
    """Whether a file may be a tree in MessagePack: a list of one or two, the first a map."""
    return start[:1] in (b"\x91", b"\x92") and 0x80 < int.from_bytes(start[1:2], "big") < 0x90


def read_json(path: Path, *, trace: bool = True) -> Profile:
    """Read a tree in JSON.

    Raises:
        BadFile: The file is damaged, or JSON of another kind.
    """
    return _read(path, deep_json.loads)


def read_msgpack(path: Path, *, trace: bool = True) -> Profile:
    """Read a tree in MessagePack.

    Raises:
        BadFile: The file is damaged, or MessagePack of another kind.
    """
    return _read(path, msgpack.decode)


def damaged(path: Path, error: Exception) -> BadFile:
    """The error for a file that breaks off or breaks its rules."""
    return format_.damaged(path, error, "Write it again with proton.finalize()")


def _read(path: Path, decode: Callable[[bytes, Limits], Any]) -> Profile:
    content, limits = read_content(path), Limits.of(path)
    try:
        document = decode(content, limits)
        if _is_tree(document):
            return read_tree(document, limits)
    except ValueError as error:
        raise damaged(path, error) from error
    raise unknown_format(path)


def _is_tree(document: Any) -> bool:
    root = document[0] if isinstance(document, list) and 1 <= len(document) <= 2 else None
    return isinstance(root, dict) and {"frame", "metrics"} <= root.keys()


def read_tree(document: list[Any], limits: Limits) -> Profile:
    """The profile that `[tree, devices]` describes.

    Raises:
        ValueError: A node is not made like one.
    """
    nodes, columns = TreeBuilder(), MetricColumns()
    hints = _table(document[0], "metrics")
    for node, metrics in _walk(document[0], nodes):
        for key, value in metrics.items():
            if key not in _DEVICE:
                # Proton's own adds nothing up; bragg writes its host time, which does, under this name.
                columns.add(node, _HOST_TIME if key == _CPU_TIME and key in hints else key, value)
    devices = document[1] if len(document) > 1 else {}
    kinds, assumed = _kinds(columns, hints)
    meta: dict[str, Any] = {"recorder": "proton", "data": "tree", "devices": _devices(devices)}
    if assumed:
        meta["assumed_inclusive"] = assumed
    if columns.texts:
        meta["text_metrics"] = sorted(columns.texts)
    tree = nodes.tree()
    return Profile(meta, tree, columns.metrics(len(tree), kinds, limits))


def _walk(root: dict[str, Any], nodes: TreeBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """The nodes and their metrics, parents before children, children in their order."""
    pending = [(root, -1)]
    while pending:
        value, parent = pending.pop()
        metrics, name = _table(value, "metrics"), _table(value, "frame").get("name")
        if not isinstance(name, str):
            raise ValueError("a frame has no name")  # noqa: TRY004
        node = 0 if parent < 0 else nodes.add(parent, name, _kind(name, metrics), _device(metrics))
        yield node, metrics
        children = value.get("children", [])
        if not isinstance(children, list) or not all(isinstance(child, dict) for child in children):
            raise ValueError("children are not a list of nodes")
        pending.extend((child, node) for child in reversed(children))


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"a node has no {name}")  # noqa: TRY004
    return found


def _kind(name: str, metrics: Mapping[str, Any]) -> FrameKind:
    kind = frame_kind(name)
    if kind is FrameKind.PYTHON:
        return FrameKind.LINE if _SAMPLES in metrics else kind
    return FrameKind.KERNEL if "time (ns)" in metrics else kind


def _device(metrics: Mapping[str, Any]) -> int:
    device = str(metrics.get("device_id", ""))
    return int(device) if device.isascii() and device.isdecimal() and len(device) < 10 else -1


def _kinds(columns: MetricColumns, hints: Mapping[str, Any]) -> tuple[dict[str, MetricKind], list[str]]:
    """How metrics behave whose names do not tell, and which of them that is a guess for."""
    names_all = any(not _MEASURED.fullmatch(hint) for hint in hints)
    kinds: dict[str, MetricKind] = {}
    assumed: dict[str, None] = {}
    for key in columns.values:
        adds_up = key in hints or key == _HOST_TIME or _ROOFLINE.fullmatch(key) or _MEASURED.fullmatch(key)
        is_guess = not adds_up and not names_all and metric_name(key).name != "cpu_time"
        kinds[key] = MetricKind.INCLUSIVE if adds_up or is_guess else MetricKind.EXCLUSIVE
        if is_guess:
            assumed.setdefault(metric_name(key).name.partition("[")[0])
    return kinds, list(assumed)


def _devices(device_info: Any) -> list[dict[str, Any]]:
    """Facts by device number, empty for numbers in between."""
    if not isinstance(device_info, dict):
        raise ValueError("the devices are not a table")  # noqa: TRY004
    found: list[dict[str, Any]] = []
    for device_type, devices in device_info.items():
        for number, facts in devices.items() if isinstance(devices, dict) else ():
            device = _device({"device_id": number})
            if not 0 <= device < _MAX_DEVICES or not isinstance(facts, dict):
                raise ValueError(f"device {number!r} is unknown")
            found += [{} for _ in range(len(found), device + 1)]
            known = {ours: facts[name] for name, ours in DEVICE_FACTS.items() if name in facts}
            found[device] = {"device_type": _DEVICE_TYPES.get(device_type, device_type), **known}
    return found
