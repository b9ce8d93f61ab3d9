"""What took most, as tables of the page: the rows, names and ranks are those of `bragg view --flat` without imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bragg.analyze.imports import without_imports
from bragg.analyze.wall.steady import steady_part
from bragg.errors import NothingRecorded, UsageError
from bragg.grouping.modules import group_by_module
from bragg.model import FrameKind, Profile
from bragg.model.host_time import own_work
from bragg.model.ids import FrameId, NodeId
from bragg.model.table import FloatArray, Int64Array
from bragg.model.transform import innermost
from bragg.views.terminal.flat_view import flat_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.labels import Labels
from bragg.views.text.units import count_text, value_text
from bragg.views.text.variants import rows_of_frames

_N_ROWS = 10
_GPU, _HOST = "gpu_time", "host_time"
_WHOLE = "in the whole run"
_METRIC_WORDS = {_GPU: "GPU time", _HOST: "host time"}
# Layers of one kind differ in their number alone.
_LAYER = re.compile(r"(?<=\.)\d+(?=[. ]|$)")


def hot_tables(profile: Profile, *, host_first: bool) -> list[dict[str, Any]]:
    """Tables by module, by operator and by what ran, of the steady state where it is known: JSON values.

    Args:
        profile: A whole run.
        host_first: The GPU waited for the host, whose time stands first.
    """
    part = steady_part(profile)
    where = _WHOLE if part is profile else "in the steady state"
    ran, where_ran = _without_imports(profile) if part is profile else (part, where)
    tables = []
    if host_first and part.measured(_HOST):
        tables.append(_by_name(ran, _HOST, "On the host", where_ran))
    if part.measured(_GPU):
        tables += [*_by_module(part, where), *_by_operator(part, where), _by_name(part, _GPU, "By kernel", where)]
    elif not tables and (metric := main_metric(part)):
        tables.append(_by_name(ran, metric, "What took most", where_ran))
    return [table for table in tables if table["rows"]]


def _without_imports(profile: Profile) -> tuple[Profile, str]:
    """What was done apart from imports, and how it is called; all of it where nothing else was done."""
    ran = without_imports(profile)
    return (ran, "without imports") if ran is not profile and ran.measured(_HOST) else (profile, _WHOLE)


def main_metric(profile: Profile) -> str | None:
    """That of a profile; None: it holds no time."""
    try:
        return profile.main_metric
    except UsageError:
        return None


def _by_name(part: Profile, metric: str, title: str, where: str) -> dict[str, Any]:
    """What `bragg view --flat` shows."""
    try:
        view = flat_view(part, ViewOptions(metrics=(metric,), max_lines=_N_ROWS))
    except NothingRecorded:
        return _table(title, part, metric, where, [], 0)
    labels, column = view.labels, view.columns[0]
    same = rows_of_frames(part.tree.frames)
    node = _hottest_nodes(part, own_work(part, metric), same[part.tree.frame])
    rows = []
    for row in view.shown.tolist():
        frame = FrameId(int(view.frames[row]))
        values = (float(column.values[row]), column.share(row), node.get(int(same[frame])))
        rows.append(_row(labels.own_text(frame), labels.full_name(frame), *values))
    return _table(title, part, metric, where, rows, view.n_hidden)


def _by_operator(part: Profile, where: str) -> Iterator[dict[str, Any]]:
    """By the innermost operator that launched it."""
    tree = part.tree
    if not (tree.kind == FrameKind.OPERATOR).any():
        return
    same = rows_of_frames(tree.frames)[tree.frame].astype(np.int64)
    operator = innermost(tree, np.where(tree.kind == FrameKind.OPERATOR, same, -1))
    own, labels = own_work(part, _GPU), Labels(tree.frames)
    value = np.bincount(operator[operator >= 0], weights=own[operator >= 0], minlength=len(tree.frames))
    # The operator's own node: where its hottest launch was made.
    at = innermost(tree, np.where(tree.kind == FrameKind.OPERATOR, np.arange(len(tree)), -1))
    node = {frame: NodeId(int(at[hot])) for frame, hot in _hottest_nodes(part, own, operator).items()}
    order = [row for row in np.argsort(-value, kind="stable").tolist() if value[row] > 0]
    rows = [
        _row(labels.text(row), labels.full_name(row), value[row], value[row] / part.total(_GPU), node.get(row))
        for row in order[:_N_ROWS]
    ]
    yield _table("By operator", part, _GPU, where, rows, len(order) - len(rows))


def _by_module(part: Profile, where: str) -> Iterator[dict[str, Any]]:
    """As `bragg view --group-by module` has them, without what is inside others; layers of one kind together."""
    try:
        modules = group_by_module(part, _GPU)
    except UsageError:
        return
    names, own = modules.tree.frames.name, own_work(modules, _GPU)
    nodes: dict[str, list[int]] = {}
    for node in range(1, len(modules.tree)):
        nodes.setdefault(_LAYER.sub("N", names[modules.tree.frame[node]]), []).append(node)
    value = {name: float(own[of].sum()) for name, of in nodes.items()}
    order = [name for name in sorted(value, key=lambda name: -value[name]) if value[name] > 0]
    first: dict[str, NodeId] = {}
    for node, frame in enumerate(part.tree.frame.tolist()):
        first.setdefault(part.tree.frames.name[frame], NodeId(node))
    rows = []
    for name in order[:_N_ROWS]:
        hottest = names[modules.tree.frame[max(nodes[name], key=lambda node: own[node])]]
        different = {names[modules.tree.frame[node]] for node in nodes[name]}
        shown = f"{name} x {len(different)}" if len(different) > 1 else hottest
        path = hottest.rpartition(" (")[0] if hottest.endswith(")") else hottest
        rows.append(_row(shown, shown, value[name], value[name] / part.total(_GPU), first.get(path)))
    yield _table("By module", part, _GPU, where, rows, len(order) - len(rows))


def _hottest_nodes(part: Profile, own: FloatArray, key: Int64Array) -> dict[int, NodeId]:
    """The node with the largest own value of each key that is not negative."""
    order = np.lexsort((own, key))
    last = np.flatnonzero(np.append(key[order][1:] != key[order][:-1], True))
    return {int(key[order[at]]): NodeId(int(order[at])) for at in last.tolist() if key[order[at]] >= 0}


def _row(name: str, full: str, value: float, share: float, node: NodeId | None) -> dict[str, Any]:
    return {"name": name, "full": full, "value": float(value), "share": float(share), "node": node}


def _table(
    title: str, part: Profile, metric: str, where: str, rows: list[dict[str, Any]], n_more: int
) -> dict[str, Any]:
    unit = part.metrics[metric].unit
    whole = f"of {value_text(float(part.total(metric)), unit)} of {_METRIC_WORDS.get(metric, metric)} {where}"
    more = f"{count_text(n_more, 'row')} more" if n_more else ""
    return {"title": title, "about": whole, "metric": metric, "unit": unit, "rows": rows, "more": more}
