"""Hardware counters of the whole GPU, shared out over the kernels that ran while they were sampled.

Sharing a sample by time alone is biased: a kernel of 6 us in samples of 100 us gets what its neighbours did. All
samples together are a system of equations, one unknown rate for each kernel, which least squares solves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.model import Profile, TrackKind
from bragg.model.table import FloatArray, Int64Array

__all__ = ["KernelCounter", "kernel_counters"]

_MOST_KERNELS = 64  # by GPU time; the others share one unknown
_BLOCK = 1 << 15  # samples at once: 17 MB
_GAP = 1.5  # times the interval: nothing was sampled in between
_CONFIDENCE = 2.0  # standard errors
_TOO_WIDE = 0.25  # of the value


@dataclass(frozen=True)
class KernelCounter:
    """What one counter says of one kernel, over all of its launches that were sampled.

    Attributes:
        device: Ordinal of the GPU.
        counter: Name and unit of the counter.
        kernel: Name of the kernel.
        rate: Its mean while the kernel ran, in the counter's unit.
        error: Half of the interval that holds the truth in 95 % of cases, in the counter's unit.
        sampled_ns: GPU time of the kernel that was sampled.
    """

    device: int
    counter: str
    kernel: str
    rate: float
    error: float
    sampled_ns: int

    @property
    def is_told(self) -> bool:
        """Whether the error is small enough; else the kernel is too short, or always beside the same others."""
        return self.error <= _TOO_WIDE * abs(self.rate)


def kernel_counters(profile: Profile) -> list[KernelCounter]:
    """Counters by kernel, by descending GPU time; none without a timeline or counters."""
    found = []
    tracks = profile.tracks
    for track in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist():
        points = profile.counters.take(profile.counters.track == track)
        if len(points) > 2:
            found += _of_counter(profile, track, points.time_ns, points.value)
    return found


def _of_counter(profile: Profile, track: int, time_ns: Int64Array, value: FloatArray) -> list[KernelCounter]:
    tracks, slices, tree = profile.tracks, profile.slices, profile.tree
    is_here = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == tracks.device[track])
    ran = slices.take(is_here[slices.track]) if len(slices) else slices
    if not len(ran):
        return []
    end_ns = time_ns + _lengths(time_ns)
    frames, column = np.unique(tree.frame[ran.node], return_inverse=True)
    busy = np.bincount(column, ran.duration_ns, len(frames))
    order = np.argsort(-busy)
    rank = np.empty(len(frames), np.int64)
    rank[order] = np.arange(len(frames))
    n_unknown = min(len(frames), _MOST_KERNELS)
    column = np.minimum(rank[column], n_unknown)
    rates, errors, sampled_ns = _solve(time_ns, end_ns, value, ran.start_ns, ran.duration_ns, column, n_unknown + 2)
    return [
        KernelCounter(
            device=int(tracks.device[track]),
            counter=tracks.label(track),
            kernel=tree.frames.name[int(frames[order[row]])],
            rate=float(rates[row]),
            error=float(errors[row]),
            sampled_ns=round(float(sampled_ns[row])),
        )
        for row in range(n_unknown)
    ]


def _lengths(time_ns: Int64Array) -> Int64Array:
    """How long each sample lasts: until the next one, or as long as its neighbours where there is a gap."""
    until_next = np.diff(time_ns)
    usual = np.minimum(until_next, np.minimum(np.roll(until_next, 1), np.roll(until_next, -1)) * _GAP)
    return np.append(usual, usual[-1]).astype(np.int64)


def _solve(
    begin_ns: Int64Array,
    end_ns: Int64Array,
    value: FloatArray,
    start_ns: Int64Array,
    duration_ns: Int64Array,
    column: Int64Array,
    n_columns: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rates, their errors, and the sampled time of each column; the last two columns: other kernels, and idle time."""
    normal, right, time = np.zeros((n_columns, n_columns)), np.zeros(n_columns), np.zeros(n_columns)
    blocks = [
        (_shares(begin_ns[at : at + _BLOCK], end_ns[at : at + _BLOCK], start_ns, duration_ns, column, n_columns), at)
        for at in range(0, len(begin_ns), _BLOCK)
    ]
    for shares, at in blocks:
        normal += shares.T @ shares
        right += shares.T @ value[at : at + _BLOCK]
        time += shares.T @ (end_ns - begin_ns)[at : at + _BLOCK]
    inverse = np.linalg.pinv(normal, rcond=1e-10)
    rates = inverse @ right
    # Errors of neighbouring samples are of one cause, since an edge that is late is so for both: they are summed in
    # pairs, and every pair has a variance of its own.
    scatter = np.zeros_like(normal)
    for shares, at in blocks:
        scores = shares * (value[at : at + _BLOCK] - shares @ rates)[:, None]
        scatter += scores.T @ scores
        neighbours = scores[:-1].T @ scores[1:]
        scatter += 0.5 * (neighbours + neighbours.T)
    variance = np.diag(inverse @ scatter @ inverse)
    spare = max(len(value) - n_columns, 1)
    errors = _CONFIDENCE * np.sqrt(np.maximum(variance, 0) * len(value) / spare)
    # Columns that others make up cannot be told apart.
    is_known = np.abs(np.diag(inverse @ normal) - 1) < 1e-6
    return rates, np.where(is_known, errors, np.inf), time


def _shares(
    begin_ns: Int64Array,
    end_ns: Int64Array,
    start_ns: Int64Array,
    duration_ns: Int64Array,
    column: Int64Array,
    n_columns: int,
) -> FloatArray:
    """The share of each sample that each column ran: float64 [n_samples, n_columns]."""
    stop_ns = start_ns + duration_ns
    first = np.searchsorted(end_ns, start_ns, side="right")
    count = np.maximum(np.searchsorted(begin_ns, stop_ns, side="left") - first, 0)
    which = np.repeat(np.arange(len(start_ns)), count)
    sample = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
    overlap = np.minimum(stop_ns[which], end_ns[sample]) - np.maximum(start_ns[which], begin_ns[sample])
    share = np.maximum(overlap, 0) / (end_ns - begin_ns)[sample]
    cells = np.bincount(sample * n_columns + column[which], share, len(begin_ns) * n_columns)
    shares: FloatArray = cells.astype(np.float64).reshape(len(begin_ns), n_columns)
    shares[:, -1] = np.maximum(1 - shares[:, :-1].sum(axis=1), 0)
    return shares
