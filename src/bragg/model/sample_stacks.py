"""Samples of a host thread as what timelines draw: each function for as long as samples found it on the call path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from bragg.model.ids import NodeId
from bragg.model.profile import Profile
from bragg.model.table import BoolArray
from bragg.model.trace import SliceTable, TrackKind

_Row = tuple[int, int, int]  # start_ns, duration_ns, node


def with_sample_stacks(profile: Profile, is_shown: BoolArray | None = None) -> Profile:
    """The profile with a slice for each stay in a function, in the place of its samples, which are leaves alone.

    Args:
        profile: Any.
        is_shown: Nodes that get slices: [n_nodes]; None: all.
    """
    of_samples = _of_samples(profile)
    if not of_samples.any():
        return profile
    path_of = _paths(profile, is_shown)
    tables = [profile.slices.take(~of_samples)]
    for track in np.unique(profile.slices.track[of_samples]).tolist():
        rows = list(_stays(profile.slices.take(of_samples & (profile.slices.track == track)), path_of))
        start_ns, duration_ns, node = np.array(rows, np.int64).reshape(-1, 3).T
        track_of_rows, nothing = np.full(len(node), track), np.zeros(len(node), np.int64)
        tables.append(SliceTable(start_ns, duration_ns, node, track_of_rows, nothing))
    return replace(profile, slices=SliceTable.concatenate(tables).sorted())


def without_samples(profile: Profile) -> Profile:
    """The profile with what was measured alone."""
    of_samples = _of_samples(profile)
    return replace(profile, slices=profile.slices.take(~of_samples)) if of_samples.any() else profile


def _of_samples(profile: Profile) -> BoolArray:
    found: BoolArray = (profile.tracks.kind == TrackKind.SAMPLES)[profile.slices.track]
    return found


def _paths(profile: Profile, is_shown: BoolArray | None) -> Callable[[int], list[int]]:
    """The shown nodes from the root, which has none itself, to a node."""
    tree = profile.tree

    @lru_cache(maxsize=1 << 14)
    def path_of(node: NodeId) -> list[int]:
        return [step for step in tree.path(node)[1:] if is_shown is None or is_shown[step]]

    return path_of


def _stays(samples: SliceTable, path_of: Callable[[int], list[int]]) -> Iterator[_Row]:
    """Stays in functions. A sample that begins where the one before ended, or nearly, continues what both have."""
    stack: list[tuple[int, int]] = []  # start_ns, node
    until_ns = 0
    ordered = samples.take(np.argsort(samples.start_ns, kind="stable"))
    rows = zip(ordered.start_ns.tolist(), ordered.duration_ns.tolist(), ordered.node.tolist(), strict=True)
    for start_ns, duration_ns, node in rows:
        path = path_of(node)
        is_next = start_ns - until_ns <= duration_ns
        depth = _n_common([open_node for _, open_node in stack], path) if is_next else 0
        yield from ((begun_ns, until_ns - begun_ns, open_node) for begun_ns, open_node in stack[depth:])
        stack[depth:] = [(start_ns, step) for step in path[depth:]]
        until_ns = start_ns + duration_ns
    yield from ((begun_ns, until_ns - begun_ns, open_node) for begun_ns, open_node in stack)


def _n_common(one: list[int], other: list[int]) -> int:
    return next((depth for depth, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))  # noqa: B905
