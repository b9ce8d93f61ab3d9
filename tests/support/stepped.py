"""Programs that do the same in each step, as profiles with a timeline, for tests.

    host 0-20 train.py:3@main > aten::mm#operator > cuLaunchKernel#gpu_api ->1
    gpu 30-90 train.py:3@main > aten::mm#operator > sgemm#kernel <-1

One slice of a step a line: `host`, `gpu` (stream 7), `gpu8` (stream 8), `second`, `third` (stream 7 of GPUs 1 and 2),
`samples` of the main thread or of an `other` one, start and end in us from the begin of the step, the call path, which
only one GPU has, and the launch that belongs to it. `bytes=64` may stand at the end of copies.
`file:line@function` is Python code, other frames are scopes unless `#kind` says more. An optimizer's step of 1 us ends
each step.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.host_time import THREAD_TIME

_LINE = re.compile(
    r"(host|gpu|gpu8|second|third|samples|other) (\d+)-(\d+) (.+?)(?: (?:->|<-)(\d+))?(?: bytes=(\d+))?$"
)
_CODE = re.compile(r"(?P<file>[^@]+):(?P<line>\d+)@(?P<name>.+)$")
_TRACKS = {"host": 0, "gpu": 1, "gpu8": 2, "samples": 3, "second": 4, "third": 5, "other": 6}
_DEVICES = [-1, 0, 0, -1, 1, 2, -1]
_PROCESS, _OTHER_THREAD = 42, 43
LAUNCH = "cuLaunchKernel#gpu_api"
_OPTIMIZER = "Optimizer.step#SGD.step#operator"
_N_STEPS = 20
_BEGIN_NS = 1_000_000_000


def launched(n: int, path: str, kernel: str, each_us: int, gap_us: int, start: int = 0) -> str:
    """So many launches, one each `gap_us`, of a kernel that begins 3 us after its launch."""
    lines = []
    for i in range(n):
        at = start + i * gap_us
        lines.append(f"host {at}-{at + 4} {path} > {LAUNCH} ->{start + i + 1}")
        lines.append(f"gpu {at + 7}-{at + 7 + each_us} {path} > {kernel}#kernel <-{start + i + 1}")
    return "\n".join(lines)


def queued(n: int, path: str, kernel: str, each_us: int) -> str:
    """So many launches at once, of kernels that keep the GPU busy."""
    lines = [f"host {i * 5}-{i * 5 + 4} {path} > {LAUNCH} ->{i + 1}" for i in range(n)]
    lines += [f"gpu {7 + i * each_us}-{7 + (i + 1) * each_us} {path} > {kernel}#kernel <-{i + 1}" for i in range(n)]
    return "\n".join(lines)


def stepped(text: str, step_us: int, n_steps: int = _N_STEPS) -> Profile:
    """The profile of a program that does this `n_steps` times.

    Args:
        text: What one step does.
        step_us: How long it takes.
        n_steps: How often.
    """
    nodes: dict[tuple[str, ...], int] = {(): 0}
    rows: list[tuple[int, int, int, int, int]] = []
    sizes: dict[int, int] = {}
    devices: dict[int, int] = {}
    lines = [*filter(str.strip, text.splitlines()), f"host {step_us - 1}-{step_us} {_OPTIMIZER}"]
    for line in lines:
        match = _LINE.match(line.strip())
        assert match, line
        track, start, end, path, correlation, size = match.groups()
        steps = tuple(path.split(" > "))
        for depth in range(1, len(steps) + 1):
            nodes.setdefault(steps[:depth], len(nodes))
        node = nodes[steps]
        sizes[node], devices[node] = int(size or 0), _DEVICES[_TRACKS[track]]
        for step in range(n_steps):
            begins = _BEGIN_NS + (step * step_us + int(start)) * 1000
            number = step * 10_000 + int(correlation) if correlation else 0
            rows.append((begins, (int(end) - int(start)) * 1000, node, _TRACKS[track], number))
    slices = SliceTable(*np.array(rows, np.int64).T).sorted()
    profile = _profile(list(nodes), slices, sizes, n_steps * step_us * 1000)
    profile.tree.frames.device[list(devices)] = list(devices.values())
    is_used = np.isin(np.arange(len(_DEVICES)), slices.track) | (np.arange(len(_DEVICES)) < _TRACKS["second"])
    slices = slices.replace(track=(np.cumsum(is_used) - 1)[slices.track].astype(np.int32))
    profile = replace(profile, tracks=profile.tracks.take(is_used), slices=slices)
    profile.check()
    return profile


def _profile(paths: list[tuple[str, ...]], slices: SliceTable, sizes: dict[int, int], duration_ns: int) -> Profile:
    rows = {path: row for row, path in enumerate(paths)}
    parent = np.array([rows[path[:-1]] if path else -1 for path in paths], np.int32)
    frames = [_frame(path[-1]) if path else (int(FrameKind.ROOT), "root", "", 0, -1) for path in paths]
    kind, name, file, line, device = (list(column) for column in zip(*frames, strict=True))
    table = FrameTable(np.array(kind, np.uint8), name, file, np.array(line, np.int32), np.array(device, np.int32))
    tree = CallTree(parent, np.arange(len(paths), dtype=np.int32), table)
    on_gpu, on_host = np.isin(slices.track, (1, 2, 4, 5)), slices.track == 0
    of_other = slices.track == _TRACKS["other"]
    metrics = []
    for metric, unit, chosen, weight in (
        ("gpu_time", "ns", on_gpu, slices.duration_ns),
        ("gpu_count", "1", on_gpu, np.ones(len(slices), np.int64)),
        ("gpu_bytes", "B", on_gpu, np.array([sizes.get(node, 0) for node in slices.node.tolist()], np.int64)),
        ("host_time", "ns", on_host | of_other, slices.duration_ns),
        (THREAD_TIME, "ns", of_other, slices.duration_ns),
    ):
        own = np.zeros(len(paths), np.int64)
        np.add.at(own, slices.node[chosen], weight[chosen])
        if metric != THREAD_TIME or own.any():
            metrics.append(Metric(metric, unit, MetricKind.INCLUSIVE, own))
    n_tracks, kinds = len(_DEVICES), {-1: TrackKind.HOST_THREAD}
    tracks = TrackTable(
        kind=np.array([kinds.get(device, TrackKind.GPU_STREAM) for device in _DEVICES], np.uint8),
        process=np.full(n_tracks, _PROCESS, np.int32),
        device=np.array(_DEVICES, np.int32),
        context=np.zeros(n_tracks, np.int64),
        stream=np.array([_PROCESS, 7, 8, _PROCESS, 7, 7, _OTHER_THREAD], np.int64),
        name=["thread", "stream 7", "stream 8", "thread", "GPU 1", "GPU 2", "other"],
    )
    tracks.kind[[_TRACKS["samples"], _TRACKS["other"]]] = TrackKind.SAMPLES
    meta = {"pid": _PROCESS, "started_ns": _BEGIN_NS - 1000, "stopped_ns": _BEGIN_NS + duration_ns + 1000}
    return Profile(meta, tree, {metric.name: metric for metric in metrics}, tracks, slices)


def _frame(label: str) -> tuple[int, str, str, int, int]:
    text, _, kind_name = label.rpartition("#")
    has_kind = bool(text) and kind_name.upper() in FrameKind.__members__
    name = text if has_kind else label
    if code := _CODE.match(name):
        return int(FrameKind.PYTHON), code["name"], code["file"], int(code["line"]), -1
    kind = FrameKind[kind_name.upper()] if has_kind else FrameKind.SCOPE
    return int(kind), name, "", 0, 0 if kind in (FrameKind.KERNEL, FrameKind.MEMORY) else -1
