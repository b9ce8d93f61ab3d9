"""Which work of the GPUs a program waits for: what hides behind the host gains nothing when it gets faster.

And how long the host takes to launch: a program whose GPU gets faster takes that long all the same.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from bragg.analyze.host_wait import is_waiting
from bragg.analyze.pauses import pauses_of_devices
from bragg.model import Profile, TrackKind
from bragg.model.table import BoolArray, FloatArray, Int64Array

# The end of a wait that the host returns from, after the end of the work that it waited for: 50 us is what the driver
# and PyTorch take at most before the next call.
_RETURN_NS = 50_000
# Silence that is no coincidence: longer than Python takes between two operators, and than the return from the wait.
_SILENCE_NS = 30_000
_SILENCE = 3
# A launch waits when this many are before it: then time of the host is time of the GPU. The driver's queue holds 1,024.
_QUEUE = 1000
# Own time of one call of an operator, most of which take 3 to 15 us: more is that of a first call, which loads code.
_CALL_NS = 20_000


def critical_ns(
    profile: Profile, span: tuple[int, int] | None = None, devices: Container[int] | None = None
) -> FloatArray:
    """GPU time of each node that the program waits for: ns [n_nodes].

    Work runs in stretches without a pause. After a stretch the GPU waits for the host, unless what comes next had been
    launched before. If the host did not wait for the stretch, the next one begins when it begins, however short this
    one is: its work hides behind the host. The last stretch is waited for: the program ends after it.

    Args:
        profile: With a timeline.
        span: Begin and end of the part that is meant; None: all of it.
        devices: Ordinals of the GPUs that the program waits for; None: all.
    """
    result = np.zeros(len(profile.tree))
    tracks = profile.tracks
    is_gpu = tracks.kind == TrackKind.GPU_STREAM
    begins_ns, ends_ns = span or (0, np.iinfo(np.int64).max)
    waits, edges = _waits(profile), _edges(profile)
    for pauses in pauses_of_devices(profile, devices):
        on_device = is_gpu & (tracks.device == pauses.device) & (tracks.unique_process == pauses.owner)
        slices = profile.slices.take(on_device[profile.slices.track])
        is_late = (pauses.launch >= 0) & (pauses.late_until_ns > pauses.start_ns)
        hides = is_late & ~_ends_a_wait(waits, pauses.start_ns) & ~_ends_silence(edges, pauses.start_ns)
        # A slice belongs to the stretch before the first pause that begins after it.
        stretch = np.searchsorted(pauses.start_ns, slices.start_ns, side="right")
        shown = ~np.append(hides, False)[stretch]
        start = np.clip(slices.start_ns, begins_ns, ends_ns)
        lasts = np.clip(slices.start_ns + slices.duration_ns, begins_ns, ends_ns) - start
        np.add.at(result, slices.node[shown], _alone(start, lasts)[shown])
    return result


def host_floor_ns(own_ns: FloatArray, calls: FloatArray, steps: float, n_launches: float, n_waits: float) -> float:
    """Time of the host in operators that recur; 0 where the host may have waited in launches themselves.

    Args:
        own_ns: Own time of operators that do not wait: [operators].
        calls: How often each was called: [operators].
        steps: Those that are called less often than every second one set the program up.
        n_launches: Work of the GPU.
        n_waits: How often the host waited for it.
    """
    if n_launches > _QUEUE * max(n_waits, 1.0):
        return 0.0
    return float(np.clip(own_ns, 0.0, _CALL_NS * calls)[calls >= steps / 2].sum())


def _alone(start_ns: Int64Array, lasts_ns: Int64Array) -> FloatArray:
    """What of each slice runs after all that began before it has ended: streams side by side count once."""
    order = np.lexsort((-lasts_ns, start_ns))
    start, ends = start_ns[order], start_ns[order] + lasts_ns[order]
    until = np.maximum.accumulate(ends)
    before = np.append(start[:1], until[:-1])
    alone = np.empty(len(order), np.float64)
    alone[order] = np.maximum(ends - np.maximum(start, before), 0)
    return alone


def _waits(profile: Profile) -> tuple[Int64Array, Int64Array]:
    """Begins and ends of host slices in which the host waits for a GPU, by end."""
    names = profile.tree.frames.name
    waiting = np.array([is_waiting(name) for name in names], np.bool_)
    slices = profile.slices
    on_host = (profile.tracks.kind == TrackKind.HOST_THREAD)[slices.track]
    chosen = slices.take(on_host & waiting[profile.tree.frame[slices.node]])
    ends = chosen.start_ns + chosen.duration_ns
    order = np.argsort(ends, kind="stable")
    return chosen.start_ns[order], ends[order]


def _edges(profile: Profile) -> Int64Array:
    """When anything that the host does began or ended: ascending."""
    slices = profile.slices.take((profile.tracks.kind == TrackKind.HOST_THREAD)[profile.slices.track])
    edges: Int64Array = np.sort(np.concatenate([slices.start_ns, slices.start_ns + slices.duration_ns]))
    return edges


def _ends_silence(edges: Int64Array, moments_ns: Int64Array) -> BoolArray:
    """Whether the host did nothing that was recorded for long before each moment, and something soon after it.

    So waits look that were not recorded, such as `torch.cuda.synchronize` without `--gpu-api`.
    """
    if not len(edges):
        return np.zeros(len(moments_ns), np.bool_)
    after = np.searchsorted(edges, moments_ns, side="left")
    before_ns = moments_ns - edges[np.maximum(after - 1, 0)]
    after_ns = edges[np.minimum(after, len(edges) - 1)] - moments_ns
    soon = (after > 0) & (after < len(edges)) & (after_ns <= _RETURN_NS)
    found: BoolArray = soon & (before_ns >= _SILENCE_NS) & (before_ns >= _SILENCE * after_ns)
    return found


def _ends_a_wait(waits: tuple[Int64Array, Int64Array], moments_ns: Int64Array) -> BoolArray:
    """Whether the host waited at each moment, and came back soon after it."""
    starts, ends = waits
    if not len(ends):
        return np.zeros(len(moments_ns), np.bool_)
    row = np.minimum(np.searchsorted(ends, moments_ns, side="left"), len(ends) - 1)
    found: BoolArray = (starts[row] <= moments_ns) & (ends[row] >= moments_ns) & (ends[row] <= moments_ns + _RETURN_NS)
    return found
