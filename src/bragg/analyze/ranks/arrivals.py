"""Collectives between CPUs: when each rank came to them, since no kernel says how long it waited.

A rank goes on when the last one has come, or before if it does not wait. So it waits at most until the last one comes,
by the clock of their host, and at most until its next operator begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bragg.analyze.ranks.collectives import steps_at, waits_for_data
from bragg.analyze.ranks.intervals import Busy
from bragg.analyze.ranks.operations import operation_of_operator
from bragg.analyze.wall.steady import during
from bragg.analyze.wall.step_times import step_times
from bragg.model import FrameKind, Profile, TrackKind
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveTable, RankSummary
from bragg.model.table import BoolArray, Int64Array
from bragg.model.tree import CallTree

_GROUP = "of CPUs"  # the name of the process group is not recorded


def arrivals_of(profile: Profile, paths: Int64Array) -> tuple[CollectiveCallTable, CollectiveTable]:
    """The collectives that the operators of a process have begun; their duration lasts until its next operator begins.

    Args:
        profile: With a timeline.
        paths: int64 [n_nodes]: ids of its call paths.
    """
    tree = profile.tree
    operation = _operations(tree)
    nodes = np.flatnonzero(operation != "")
    on_host = profile.tracks.kind[profile.slices.track] == TrackKind.HOST_THREAD
    is_operator = on_host & (tree.kind == FrameKind.OPERATOR)[profile.slices.node]
    operators = profile.slices.take(is_operator)
    operators = operators.take(np.argsort(operators.start_ns, kind="stable"))
    is_ours = np.isin(operators.node, nodes)
    ours, others = operators.take(is_ours), operators.take(~is_ours & ~_encloses(tree, nodes)[operators.node])
    ends_ns = ours.start_ns + ours.duration_ns
    following = np.searchsorted(operators.start_ns, ends_ns)
    next_ns = np.append(operators.start_ns, 0)[following]
    collectives = CollectiveTable(
        call=np.searchsorted(nodes, ours.node).astype(np.int32),
        sequence=np.arange(len(ours)),
        step=steps_at(profile, ours.start_ns),
        start_ns=ours.start_ns,
        duration_ns=np.where(following < len(operators), next_ns, ends_ns) - ours.start_ns,
        exposed_ns=np.full(len(ours), -1, np.int64),
        compute_ns=Busy(others).before(ours.start_ns),
        copy_ns=np.zeros(len(ours), np.int64),
        data_ns=Busy(waits_for_data(profile)).before(ours.start_ns),
        launches=np.searchsorted(others.start_ns, ours.start_ns),
    )
    calls = CollectiveCallTable(
        group=[_GROUP] * len(nodes),
        operation=operation[nodes].tolist(),
        dtype=[""] * len(nodes),
        size_bytes=np.full(len(nodes), -1, np.int64),
        path=paths[nodes],
    )
    return calls, collectives


def host_time_in_steps(profile: Profile) -> Int64Array | None:
    """What samples say of each node from the end of the first step on, ns [n_nodes]; None: steps are not known."""
    times = step_times(profile)
    is_sample = profile.tracks.kind[profile.slices.track] == TrackKind.SAMPLES
    if times is None or not is_sample.any():
        return None
    samples = during(profile.slices.take(is_sample), int(times.ends_ns[0]), times.last_ns)
    sums: Int64Array = np.zeros(len(profile.tree), np.int64)
    np.add.at(sums, samples.node, samples.duration_ns)
    return sums


def waits_for_last(ranks: Sequence[RankSummary]) -> list[RankSummary]:
    """Ranks whose collectives last until the last rank came, if they waited; of several clocks ranks without any."""
    if len({rank.host for rank in ranks}) > 1:
        return [replace(rank, collectives=CollectiveTable.empty) for rank in ranks]
    came_ns: Int64Array = np.zeros(0, np.int64)
    for rank in ranks:
        own_ns = rank.collectives().start_ns
        more = max(len(own_ns) - len(came_ns), 0)
        came_ns = np.append(came_ns, np.zeros(more, np.int64))
        came_ns[: len(own_ns)] = np.maximum(came_ns[: len(own_ns)], own_ns)
    return [replace(rank, collectives=partial(_until_last, rank, came_ns)) for rank in ranks]


def _until_last(rank: RankSummary, came_ns: Int64Array) -> CollectiveTable:
    table = rank.collectives()
    return table.replace(duration_ns=np.minimum(table.duration_ns, came_ns[: len(table)] - table.start_ns))


def _operations(tree: CallTree) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """What the outermost operators of collectives do; empty: it is another node: [n_nodes]."""
    of_frame = np.array([operation_of_operator(name) for name in tree.frames.name], np.str_)
    found = of_frame[tree.frame]
    found[(tree.kind != FrameKind.OPERATOR) | (found[tree.parent] != "")] = ""
    return found


def _encloses(tree: CallTree, nodes: Int64Array) -> BoolArray:
    """Nodes above some others, whose time is theirs too: [n_nodes]."""
    is_above: Int64Array = np.zeros(len(tree), np.int64)
    is_above[nodes] = 1
    return tree.sum_up(is_above) > 0
