"""The metrics that a program recorded itself, from the tables of a capture."""

from __future__ import annotations

import numpy as np

from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.profile import resolve
from bragg.formats.captured.tables import CaptureTables, Columns, last_rows
from bragg.formats.limits import Limits
from bragg.model import CallTree, Combine, Metric, MetricKind

_KINDS = (MetricKind.INCLUSIVE, MetricKind.EXCLUSIVE, MetricKind.PROPERTY)


def values_of(tables: CaptureTables, tree: CallTree, limits: Limits) -> dict[str, Metric]:
    """The metrics by name; a vector is one metric for each element, `name[index]`.

    Raises:
        ValueError: There are too many for the size of the file.
    """
    rows = last_rows(tables.values, ChunkType.VALUES, ("node", "metric", "index", "length"))
    rows["node"] = resolve(rows["node"], len(tree))
    name, unit, kind, is_float = (tables.metric_names.column(each) for each in ("name", "unit", "kind", "is_float"))
    elements = np.stack([rows["metric"], rows["index"], rows["length"] > 0], axis=1).astype(np.int64)
    found: dict[str, Metric] = {}
    columns, place = np.unique(elements, axis=0, return_inverse=True)
    limits.check_metrics(len(columns), len(tree))
    # The rows of each metric, one metric after the other.
    order = np.argsort(place.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(place.reshape(-1), minlength=len(columns))).tolist()
    for (metric, index, is_vector), begin, end in zip(columns.tolist(), [0, *ends], ends, strict=False):
        if metric >= len(name) or kind[metric] < 0:  # its name was lost: nobody can say what these numbers are
            continue
        label = tables.strings.get(int(name[metric]), f"<lost {metric}>") + (f"[{index}]" if is_vector else "")
        chosen = order[begin:end]
        own_rows = {column: values[chosen] for column, values in rows.items()}
        own = _own(own_rows, _KINDS[kind[metric]], bool(is_float[metric]), len(tree))
        counted = np.zeros(len(tree), np.bool_)
        counted[own_rows["node"]] = True
        combine = Combine.MAX if kind[metric] == _KINDS.index(MetricKind.PROPERTY) else Combine.SUM
        found[label] = Metric(
            label, tables.strings.get(int(unit[metric]), ""), _KINDS[kind[metric]], own, combine, counted
        )
    return found


def _own(rows: Columns, kind: MetricKind, is_float: bool, n_nodes: int) -> np.ndarray:
    values = rows["bits"].view(np.float64) if is_float else rows["bits"]
    if kind is MetricKind.PROPERTY:
        own = np.full(n_nodes, np.nan)
        own[rows["node"]] = values
        return own
    own = np.zeros(n_nodes, np.float64 if is_float else np.int64)
    np.add.at(own, rows["node"], values)
    return own
