"""What the host did while a GPU had nothing to do, as metrics of its call paths."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.idle_folded import folded_idle
from bragg.analyze.innermost import innermost_changes
from bragg.analyze.pauses import Pauses, pauses_of_devices
from bragg.analyze.wall.wall_time import Steady
from bragg.errors import UsageError
from bragg.model import CallTree, Combine, FrameKind, FrameTable, IdleKind, Metric, MetricKind, Profile
from bragg.model.table import BoolArray, FloatArray, Int64Array

__all__ = ["IDLE_METRICS", "LEAST_PAUSE_NS", "NOT_KNOWN", "OTHERS", "SHORT", "with_added_up_idle", "with_idle_paths"]

IDLE_METRICS = ("gpu_idle_time", "gpu_idle_count", "gpu_idle_longest")
# A kernel that was launched in time begins 1 to 2 us after the one before it.
LEAST_PAUSE_NS = 3_000

# Idle time that no code of the host is to blame for: nodes under the root, behind those of a profile in this order.
OTHERS = ("<short pauses>", "<launch not known>", "<launched and not begun>", "<queue full>")
SHORT, NOT_KNOWN, _STARTED, _FULL = range(len(OTHERS))
# The same as a node below each code whose work waited.
_WAITED_NAME = "<waited for another stream, a copy or an event>"
_HOST, _WAITED = -1, len(OTHERS)
_NEVER = np.iinfo(np.int64).max
_REASON = {
    IdleKind.LATE: _HOST,
    IdleKind.QUEUED: _STARTED,
    IdleKind.NOT_KNOWN: NOT_KNOWN,
    IdleKind.WAITED: _WAITED,
    IdleKind.FULL_QUEUE: _FULL,
}


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of pauses, each of one node; within a pause a node may have several."""

    pause: Int64Array
    node: Int64Array
    idle_ns: Int64Array

    def added_up(self, n_nodes: int) -> _Parts:
        """One part for each pause and node, by pause."""
        pairs, part_of = np.unique(self.pause * n_nodes + self.node, return_inverse=True)
        idle_ns = np.zeros(len(pairs), np.int64)
        np.add.at(idle_ns, part_of.reshape(-1), self.idle_ns)
        return _Parts(pairs // n_nodes, pairs % n_nodes, idle_ns)

    def largest(self) -> Int64Array:
        """The node with the largest part of each pause: int64 [n_pauses]; of equal ones the first. All are by pause."""
        first = np.flatnonzero(np.append(True, np.diff(self.pause) > 0)[: len(self.pause)])
        counts = np.diff(np.append(first, len(self.pause)))
        is_largest = self.idle_ns == np.repeat(np.maximum.reduceat(self.idle_ns, first), counts)
        row = np.where(is_largest, np.arange(len(self.pause)), len(self.pause))
        node: Int64Array = self.node[np.minimum.reduceat(row, first)]
        return node


def with_added_up_idle(profile: Profile, steady: Steady | None) -> Profile | None:
    """The profile with the idle time of the steady state that its recorder has added up; None: it has none."""
    found = with_idle_paths(profile, steady=steady) if len(profile.idle) and not len(profile.slices) else None
    return found if found is not None and found.total(IDLE_METRICS[0]) > 0 else None


def with_idle_paths(
    profile: Profile,
    least_ns: int = LEAST_PAUSE_NS,
    steady: Steady | None = None,
    devices: Container[int] | None = None,
) -> Profile:
    """The profile with its GPUs' idle time at the paths that ran meanwhile on the thread that launched what came next.

    A pause is divided over time among the innermost slices of that thread, up to the end of the launch; where it has
    none, the time belongs to the code that made the launch. The rest of the pause, in which the work had been launched
    and did not run yet, has a node below that code if it waited for another stream, a copy or an event, else under the
    root. Short pauses and those whose launch is not known have nodes there, too. So `gpu_idle_time` of the root and the
    time in which a device worked are its span from first to last work. Nodes of the profile keep their numbers, and
    those of `OTHERS` are next.

    `gpu_idle_count` counts each pause once, at the node with its largest part; `gpu_idle_longest` is the largest part
    of a pause that a node has.

    Args:
        profile: With a timeline.
        least_ns: Shorter pauses are added up as short ones; without a timeline those under `LEAST_PAUSE_NS`.
        steady: The part of the run whose pauses are meant; None: all of it.
        devices: Ordinals of the GPUs whose pauses are meant; None: all.

    Raises:
        UsageError: The profile has neither a timeline of a GPU nor the idle time that recorders add up.
    """
    of_devices = list(pauses_of_devices(profile, devices))
    if not of_devices and len(profile.idle):
        return _with_folded(profile, least_ns, steady, devices)
    if not of_devices:
        if profile.run.backend == "cpu":
            raise UsageError("no GPU worked in this run", hint="Where the host's time went: bragg view")
        if not profile.run.folds_idle:
            raise UsageError("this run was recorded with --no-idle", hint="Record it again without")
        raise UsageError("this profile has no timeline of a GPU", hint="Record one: bragg run --data trace")
    states = _States(profile.tree)
    n_nodes = states.n_nodes
    idle_ns, count = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    longest = np.full(n_nodes, np.nan)
    for found in of_devices:
        pauses = found if steady is None else found.during(steady.begins_ns, steady.ends_ns)
        parts = _parts_of(profile, pauses, states, least_ns).added_up(n_nodes)
        np.add.at(idle_ns, parts.node, parts.idle_ns)
        np.add.at(count, parts.largest(), 1)
        np.fmax.at(longest, parts.node, parts.idle_ns)
    return _with_metrics(profile, states, idle_ns, count, longest)


def _with_folded(profile: Profile, least_ns: int, steady: Steady | None, devices: Container[int] | None) -> Profile:
    """From what the recorder has added up."""
    if least_ns != LEAST_PAUSE_NS:
        raise UsageError(
            f"only pauses under {LEAST_PAUSE_NS // 1000} us are known as short",
            hint="Record more: bragg run --data trace",
        )
    states = _States(profile.tree)
    n_nodes = states.n_nodes
    reasons = np.array([_REASON.get(kind, SHORT) for kind in IdleKind], np.int64)
    idle_ns, count, longest = np.zeros(n_nodes), np.zeros(n_nodes, np.int64), np.full(n_nodes, np.nan)
    for found in folded_idle(profile, steady, devices):
        node = states.nodes_of(reasons[found.rows.kind], found.rows.node.astype(np.int64))
        np.add.at(idle_ns, node, found.idle_ns)
        count += _whole(np.bincount(node, found.rows.count * found.share, n_nodes).astype(np.float64))
        ended = (found.share > 0) & (found.rows.longest_ns > 0)
        np.fmax.at(longest, node[ended], found.rows.longest_ns[ended])
    return _with_metrics(profile, states, np.rint(idle_ns).astype(np.int64), count, longest)


def _whole(values: FloatArray) -> Int64Array:
    """Whole numbers that differ by less than 1 from others, and add up to the rounded sum of these."""
    return np.diff(np.rint(np.cumsum(values)), prepend=0.0).astype(np.int64)


def _with_metrics(
    profile: Profile, states: _States, idle_ns: Int64Array, count: Int64Array, longest: FloatArray
) -> Profile:
    tree, kept = states.tree((idle_ns > 0) | (count > 0))
    idle_ns, count, longest = idle_ns[kept], count[kept], longest[kept]
    time_name, count_name, longest_name = IDLE_METRICS
    idle = (
        Metric(time_name, "ns", MetricKind.INCLUSIVE, idle_ns),
        Metric(count_name, "1", MetricKind.INCLUSIVE, count),
        Metric(longest_name, "ns", MetricKind.PROPERTY, longest, Combine.MAX),
    )
    same = np.arange(len(profile.tree))
    metrics = {name: metric.gather(same, len(tree)) for name, metric in profile.metrics.items()}
    return replace(profile, tree=tree, metrics={**metrics, **{metric.name: metric for metric in idle}})


class _States:
    """A tree with nodes for idle time that no code of the host is to blame for: `OTHERS`, then one below each node."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self._first = len(tree) + len(OTHERS)
        self.n_nodes = self._first + len(tree)

    def nodes_of(self, reason: Int64Array | int, node: Int64Array) -> Int64Array:
        """The nodes of idle time, by why a GPU waited and by the code that was to launch or launched."""
        other = np.where(np.equal(reason, _WAITED), self._first + node, len(self._tree) + np.asarray(reason))
        return np.where(np.equal(reason, _HOST), node, other)

    def tree(self, is_used: BoolArray) -> tuple[CallTree, Int64Array]:
        """The tree, of the last nodes those that are used; and which of all nodes it has."""
        frames, waited = self._tree.frames, np.flatnonzero(is_used[self._first :])
        others = np.arange(len(frames), len(frames) + len(OTHERS))
        tree = CallTree(
            parent=np.concatenate([self._tree.parent, np.zeros(len(OTHERS)), waited]).astype(np.int32),
            frame=np.concatenate([self._tree.frame, others, np.full(len(waited), others[-1] + 1)]).astype(np.int32),
            frames=FrameTable.concatenate([frames, FrameTable.of_names(FrameKind.STATE, [*OTHERS, _WAITED_NAME])]),
        )
        return tree, np.append(np.arange(self._first), self._first + waited)


def _parts_of(profile: Profile, pauses: Pauses, states: _States, least_ns: int) -> _Parts:
    start, end = pauses.start_ns, pauses.end_ns
    short = end - start < least_ns
    unknown = ~short & (pauses.launch < 0)
    has_reason = ~short & ~unknown
    late_until = np.where(has_reason, pauses.late_until_ns, start)
    everyone = np.arange(len(start))
    launched_by = _callers(profile, pauses.launch)
    first = np.where(short, SHORT, np.where(unknown, NOT_KNOWN, _STARTED)).astype(np.int64)
    starts_until, changes_until = (
        np.where(has_reason, each, end) for each in (pauses.starts_until_ns, pauses.changes_until_ns)
    )
    found = [
        _Parts(everyone, states.nodes_of(first, launched_by), starts_until - late_until),
        _Parts(everyone, states.nodes_of(_FULL, launched_by), changes_until - starts_until),
        _Parts(everyone, states.nodes_of(_WAITED, launched_by), end - changes_until),
    ]
    late = np.flatnonzero(late_until > start)
    threads = profile.slices.track[pauses.launch[late]]
    for thread in np.flatnonzero(np.bincount(threads)).tolist():
        chosen = late[threads == thread]
        found.append(_parts_of_thread(profile, thread, chosen, pauses, late_until))
    parts = _Parts(*(np.concatenate([getattr(part, name) for part in found]) for name in ("pause", "node", "idle_ns")))
    real = parts.idle_ns > 0
    return _Parts(parts.pause[real], parts.node[real], parts.idle_ns[real])


def _parts_of_thread(
    profile: Profile, thread: int, chosen: Int64Array, pauses: Pauses, late_until: Int64Array
) -> _Parts:
    """What a host thread did in the beginning of its pauses, in which it had not launched yet."""
    start, end = pauses.start_ns[chosen], late_until[chosen]
    changes, innermost = _innermost(profile, thread, start, end)
    moments = np.sort(np.concatenate([changes[1:], start, end]))
    moments = moments[np.append(True, np.diff(moments) > 0)]  # a tenth of what np.unique takes
    begin, stop = moments[:-1], moments[1:]
    pause = np.searchsorted(start, begin, side="right") - 1
    inside = (pause >= 0) & (begin < end[pause])
    pause, begin, stop = pause[inside], begin[inside], stop[inside]
    node = innermost[np.searchsorted(changes, begin, side="right") - 1]
    callers = _callers(profile, pauses.launch[chosen])
    return _Parts(chosen[pause], np.where(node >= 0, node, callers[pause]), stop - begin)


def _callers(profile: Profile, launch: Int64Array) -> Int64Array:
    """The nodes of the code that made launches: int64 [n]."""
    tree, node = profile.tree, profile.slices.node[launch].astype(np.int64)
    return np.where(tree.kind[node] == FrameKind.GPU_API, np.maximum(tree.parent[node], 0), node)


def _innermost(profile: Profile, thread: int, start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """When the innermost slice of a thread changes, from before all times on, and its node from then on; -1: none.

    Only slices that overlap one of the intervals, which are disjoint and ascending, are looked at.
    """
    slices = profile.slices.take(profile.slices.track == thread)
    ends = slices.start_ns + slices.duration_ns
    next_interval = np.searchsorted(end, slices.start_ns, side="right")
    overlaps = ends > np.append(start, _NEVER)[next_interval]
    chosen = slices.take(overlaps)
    return innermost_changes(chosen.start_ns, ends[overlaps], chosen.node.astype(np.int64))
