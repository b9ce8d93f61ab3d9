"""Profiles as data frames of pandas and polars, which are not needed for anything else."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.errors import UsageError
from bragg.model.metric import MetricKind
from bragg.model.profile import Profile, TableName
from bragg.model.trace import TrackKind
from bragg.model.tree import FrameKind

_PATH_SEPARATOR = " > "


def pandas_frame(profile: Profile, table: TableName = "nodes") -> Any:
    """One table of a profile as a `pandas.DataFrame`, see `Profile.to_pandas`.

    Raises:
        UsageError: pandas is not installed, or there is no such table.
    """
    return _library("pandas").DataFrame(_columns(profile, table))


def polars_frame(profile: Profile, table: TableName = "nodes") -> Any:
    """The same table as a `polars.DataFrame`; missing values are null.

    Raises:
        UsageError: polars is not installed, or there is no such table.
    """
    return _library("polars").DataFrame(_columns(profile, table), nan_to_null=True)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed", hint=f"Install it with: pip install 'bragg[{name}]'") from error


def _columns(profile: Profile, table: str) -> dict[str, Any]:
    tables = {"nodes": _node_columns, "slices": _slice_columns, "inputs": _input_columns}
    if table not in tables:
        raise UsageError(f"there is no table {table!r}", hint=f"Choose one of: {', '.join(tables)}")
    return tables[table](profile)


def _node_columns(profile: Profile) -> dict[str, Any]:
    tree = profile.tree
    columns: dict[str, Any] = {
        "node": np.arange(len(tree)),
        "parent": tree.parent,
        "path": _paths(profile),
        **_frame_columns(profile, tree.frame),
    }
    for name, metric in profile.metrics.items():
        column = f"{name} (metric)" if name in columns else name
        columns[column] = metric.own
        if metric.kind is MetricKind.INCLUSIVE:
            columns[f"{column} (inc)"] = profile.inclusive(name)
    return columns


def _slice_columns(profile: Profile) -> dict[str, Any]:
    slices, tracks = profile.slices, profile.tracks
    track_labels = [tracks.label(track) for track in range(len(tracks))]
    kinds = [TrackKind(kind).name.lower() for kind in tracks.kind.tolist()]
    paths = _paths(profile)
    return {
        "start_ns": slices.start_ns,
        "duration_ns": slices.duration_ns,
        "node": slices.node,
        "path": [paths[node] for node in slices.node.tolist()],
        **_frame_columns(profile, profile.tree.frame[slices.node]),
        "track": [track_labels[track] for track in slices.track.tolist()],
        "track_kind": [kinds[track] for track in slices.track.tolist()],
        "stream": tracks.stream[slices.track],
        "process": tracks.process[slices.track],
        "correlation": slices.correlation,
    }


def _input_columns(profile: Profile) -> dict[str, Any]:
    inputs, labels, paths = profile.inputs, profile.tree.label, _paths(profile)
    columns: dict[str, Any] = {"node": inputs.node, "input": inputs.input}
    columns |= {"producer": inputs.producer, "output": inputs.output, "count": inputs.count}
    for name, nodes in (("node", inputs.node.tolist()), ("producer", inputs.producer.tolist())):
        columns[f"{name}_name"] = [labels(node) for node in nodes]
        columns[f"{name}_path"] = [paths[node] for node in nodes]
    return columns


def _frame_columns(profile: Profile, frame: NDArray[np.int32]) -> dict[str, Any]:
    """Name, kind and place of each row; empty text, line 0 and device -1 mean unknown."""
    frames = profile.tree.frames
    kinds = [FrameKind(kind).name.lower() for kind in frames.kind.tolist()]
    rows = frame.tolist()
    return {
        "name": [frames.name[row] for row in rows],
        "kind": [kinds[row] for row in rows],
        "file": [frames.file[row] for row in rows],
        "line": frames.line[frame],
        "device": frames.device[frame],
    }


def _paths(profile: Profile) -> list[str]:
    """Labels from below the root to each node; empty for the root."""
    tree = profile.tree
    labels = tree.frames.labels()
    paths = [""] * len(tree)
    for node, (parent, frame) in enumerate(zip(tree.parent.tolist(), tree.frame.tolist(), strict=True)):
        if parent >= 0:
            paths[node] = paths[parent] + _PATH_SEPARATOR + labels[frame] if parent else labels[frame]
    return paths
