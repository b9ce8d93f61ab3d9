"""Hardware counters of the whole GPU, shared out over the kernels that ran while they were sampled.

Sharing a sample by time alone is biased: a kernel of 6 us in samples of 100 us gets what its neighbours did. All
samples together are a system of equations, one unknown rate for each kernel, which least squares solves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.model.meta.telemetry import GPU_TRACKS, POWER_TRACK
from bragg.model.profile import Profile
from bragg.model.table import BoolArray, FloatArray, Int32Array, Int64Array
from bragg.model.trace import TrackKind

_MOST_GROUPS = 128  # by GPU time; the others share one unknown
_BLOCK = 1 << 14  # samples at once: 17 MB
_GAP = 1.5  # times the interval: nothing was sampled in between
_CONFIDENCE = 2.0  # standard errors
_TOO_WIDE = 0.25  # of the value
_NOTHING = 0.01  # of the largest sample: an error that small tells a value near 0
_AT_EDGES = 4.0  # standard deviations: so far departs a rate that a kernel has in a sixteenth of its time
_FILLED = 0.999  # of a sample: one kernel ran throughout
_LEAST_WEIGHT = 1e-6  # of what is taken for granted, in samples
_HIGHEST_LEVERAGE = 0.99  # a sample that only one kernel explains fits whatever it says


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
        sampled_share: Of all its GPU time in the timeline.
        is_told: Whether the error is small enough; else the kernel is too short, or always beside the same others.
    """

    device: int
    counter: str
    kernel: str
    rate: float
    error: float
    sampled_ns: int
    sampled_share: float
    is_told: bool


@dataclass(frozen=True, eq=False)
class Rates:
    """What the counters of one device say of groups of launches.

    Attributes:
        device: Ordinal of the GPU.
        tracks: The counters, rows of the track table: they were sampled at the same times.
        rate: Mean while the group ran, in the counter's unit: float64 [n_tracks, n_groups]; NaN where it did not run.
        error: Half of the interval that holds the truth in 95 % of cases: float64 [n_tracks, n_groups].
        is_told: Whether the error is small enough: bool [n_tracks, n_groups].
        sampled_ns: GPU time that was sampled: float64 [n_groups].
        ran_ns: GPU time in the timeline: float64 [n_groups].
        idle_rate: Mean while nothing ran: float64 [n_tracks].
    """

    device: int
    tracks: tuple[int, ...]
    rate: FloatArray
    error: FloatArray
    is_told: BoolArray
    sampled_ns: FloatArray
    ran_ns: FloatArray
    idle_rate: FloatArray


def kernel_counters(profile: Profile) -> list[KernelCounter]:
    """Counters by kernel, by descending GPU time; none without a timeline or counters."""
    frames, tracks = profile.tree.frames, profile.tracks
    return [
        KernelCounter(
            device=rates.device,
            counter=tracks.label(track),
            kernel=frames.name[frame],
            rate=float(rates.rate[row, frame]),
            error=float(rates.error[row, frame]),
            sampled_ns=round(float(rates.sampled_ns[frame])),
            sampled_share=min(float(rates.sampled_ns[frame] / rates.ran_ns[frame]), 1.0),
            is_told=bool(rates.is_told[row, frame]),
        )
        for rates in sampled_rates(profile, profile.tree.frame)
        for row, track in enumerate(rates.tracks)
        for frame in np.argsort(-rates.sampled_ns, kind="stable")[:_MOST_GROUPS].tolist()
        if not np.isnan(rates.rate[row, frame])
    ]


def sampled_rates(profile: Profile, group: Int32Array | Int64Array) -> Iterator[Rates]:
    """The rates of each device's counters in groups of nodes.

    Ratios that are not shares of time, such as hit rates, do not add up over time and are left out.

    Args:
        profile: With a timeline; without one there are no rates.
        group: [n_nodes], the group of each node, from 0.
    """
    tracks = profile.tracks
    sampled: dict[tuple[int, bytes], list[tuple[int, FloatArray]]] = {}
    times: dict[bytes, Int64Array] = {}
    for track in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist():
        points = profile.counters.take(profile.counters.track == track)
        if len(points) > 2 and tracks.label(track).endswith(("/s)", "(%)")) and tracks.label(track) not in GPU_TRACKS:
            key = points.time_ns.tobytes()
            times[key] = points.time_ns
            sampled.setdefault((int(tracks.device[track]), key), []).append((track, points.value))
    for (device, key), columns in sampled.items():
        rows, values = zip(*columns, strict=True)
        rates = _of_device(profile, device, times[key], np.stack(values, axis=1), group)
        if rates is not None:
            yield Rates(device, rows, *rates)


def power_rates(profile: Profile, group: Int32Array | Int64Array) -> Iterator[Rates]:
    """Power while groups of nodes ran, from samples of telemetry: W, of each device whose power was sampled.

    A sample is taken for the time since the one before. Together with idle time the groups explain all of the power,
    so their energy adds up to that of the GPU.

    Args:
        profile: With a timeline; without one there are no rates.
        group: [n_nodes], the group of each node, from 0.
    """
    tracks = profile.tracks
    for track in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist():
        points = profile.counters.take(profile.counters.track == track)
        if len(points) <= 2 or tracks.label(track) != POWER_TRACK:
            continue
        device, time_ns = int(tracks.device[track]), points.time_ns
        begin_ns = time_ns - _lengths(np.append(2 * time_ns[0] - time_ns[1], time_ns))[:-1]
        rates = _of_device(profile, device, begin_ns, points.value[:, None], group)
        if rates is not None:
            yield Rates(device, (track,), *rates)


def _of_device(
    profile: Profile, device: int, time_ns: Int64Array, values: FloatArray, group: Int32Array | Int64Array
) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray, FloatArray, FloatArray] | None:
    tracks, slices = profile.tracks, profile.slices
    is_here = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == device)
    ran = slices.take(is_here[slices.track]) if len(slices) else slices
    if not len(ran):
        return None
    of_slice = group[ran.node]
    busy = np.bincount(of_slice, ran.duration_ns, int(group.max()) + 1).astype(np.float64)
    chosen = np.argsort(-busy, kind="stable")[: min(_MOST_GROUPS, np.count_nonzero(busy))]
    column = np.full(len(busy), len(chosen), np.int64)
    column[chosen] = np.arange(len(chosen))
    end_ns = time_ns + _lengths(time_ns)
    found = _solve(time_ns, end_ns, values, ran.start_ns, ran.duration_ns, column[of_slice], len(chosen) + 2)
    rate, error = (np.full((values.shape[1], len(busy)), np.nan) for _ in range(2))
    sampled_ns = np.zeros(len(busy))
    rate[:, chosen], error[:, chosen] = (part[:, : len(chosen)] for part in found[:2])
    sampled_ns[chosen] = found[2][: len(chosen)]
    return rate, error, _is_told(rate, error, values), sampled_ns, busy, found[0][:, -1]


def _is_told(rate: FloatArray, error: FloatArray, values: FloatArray) -> BoolArray:
    """Rates that the samples determine. None is negative: where one is by more than its error, the model is wrong."""
    nothing = _NOTHING * np.abs(values).max(axis=0)[:, None]
    with np.errstate(invalid="ignore"):
        told: BoolArray = (error <= np.maximum(_TOO_WIDE * rate, nothing)) & (rate >= -np.maximum(error, nothing))
    return told


def _lengths(time_ns: Int64Array) -> Int64Array:
    """How long each sample lasts: until the next one, or as long as its neighbours where there is a gap."""
    until_next = np.diff(time_ns)
    usual = np.minimum(until_next, np.minimum(np.roll(until_next, 1), np.roll(until_next, -1)) * _GAP)
    return np.append(usual, usual[-1]).astype(np.int64)


def _solve(
    begin_ns: Int64Array,
    end_ns: Int64Array,
    values: FloatArray,
    start_ns: Int64Array,
    duration_ns: Int64Array,
    column: Int64Array,
    n_columns: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rates and their errors, float64 [n_counters, n_columns], and the sampled time of each column, in ns.

    The last two columns are other kernels and idle time. `values` is float64 [n_samples, n_counters].
    """
    n_counters = values.shape[1]
    normal, right, time = np.zeros((n_columns, n_columns)), np.zeros((n_columns, n_counters)), np.zeros(n_columns)
    order = np.argsort(start_ns, kind="stable")
    slices = start_ns[order], start_ns[order] + duration_ns[order], column[order]
    for here, shares in _blocks(begin_ns, end_ns, slices, n_columns):
        normal += shares.T @ shares
        right += shares.T @ values[here]
        time += shares.T @ (end_ns - begin_ns)[here]
    # Some columns are known by their sum alone: what always runs in the same share of a sample. Before any sample, each
    # rate is taken to be anywhere between nothing and the largest sample. So a kernel of a microsecond beside each
    # launch of a long one takes no more than its share of time from the long one.
    highest = np.abs(values).max(axis=0)
    spread = highest / np.sqrt(12)  # standard deviation of a uniform distribution
    unexplained = (values**2).sum(axis=0) - np.einsum("ic,ic->c", right, np.linalg.pinv(normal, rcond=1e-10) @ right)
    spare = max(len(values) - n_columns, 1)
    weight = max(float((unexplained / spare / np.where(spread > 0, spread, 1) ** 2).mean()), _LEAST_WEIGHT)
    inverse = np.linalg.inv(normal + weight * np.eye(n_columns)).astype(np.float64)
    rates: FloatArray = inverse @ (right + weight * highest / 2)
    # Errors of neighbouring samples are of one cause, since an edge that is late is so for both: they are summed in
    # pairs, and every pair has a variance of its own. A sample that pulls the fit to itself has a small residual:
    # dividing by what its leverage leaves undoes that (HC3 of MacKinnon and White, 1985).
    variance = np.zeros((n_columns, n_counters))
    for here, shares in _blocks(begin_ns, end_ns, slices, n_columns):
        pull = shares @ inverse
        leverage = np.minimum(np.einsum("ij,ij->i", pull, shares), _HIGHEST_LEVERAGE)
        residuals = (values[here] - shares @ rates) / (1 - leverage)[:, None]
        variance += (pull**2).T @ residuals**2
        variance += (pull[:-1] * pull[1:]).T @ (residuals[:-1] * residuals[1:])
    variance *= len(values) / spare
    assumed = (weight * spread) ** 2 * np.einsum("ij,ij->i", inverse, inverse)[:, None]
    errors = _CONFIDENCE * np.sqrt(np.maximum(variance, 0) + assumed).T + _neighbours_error(
        begin_ns, end_ns, values, slices, inverse
    )
    # What ran for less than one sample in all cannot be told.
    return rates.T, np.where(np.diag(inverse) < 1, errors, np.inf), time


def _neighbours_error(
    begin_ns: Int64Array,
    end_ns: Int64Array,
    values: FloatArray,
    slices: tuple[Int64Array, Int64Array, Int64Array],
    inverse: FloatArray,
) -> FloatArray:
    """What rates that change within a kernel may add to the rates of those beside it: float64 [n_counters, n_columns].

    A long kernel that begins or ends at another rate than its mean does so each time, so this does not average out. How
    far such a rate departs is estimated by the standard deviation of the samples that the kernel fills. A sample of
    several kernels weighs in the fit of each by its row of the inverse. A change that is shorter than a sample is seen
    in part only.
    """
    n_columns, n_counters = len(inverse), values.shape[1]
    count, total, squares = np.zeros(n_columns), *(np.zeros((n_columns, n_counters)) for _ in range(2))
    for here, shares in _blocks(begin_ns, end_ns, slices, n_columns):
        filled = (shares >= _FILLED).astype(np.float64)
        count += filled.sum(axis=0)
        total += filled.T @ values[here]
        squares += filled.T @ values[here] ** 2
    times = np.maximum(count, 1)[:, None]
    departs = _AT_EDGES * np.sqrt(np.maximum(squares / times - (total / times) ** 2, 0))
    departs[-1] = 0  # idle time has no rate that changes
    error: FloatArray = np.zeros((n_columns, n_counters))
    for _, shares in _blocks(begin_ns, end_ns, slices, n_columns):
        weight = np.abs(shares @ inverse) * (shares > 0)
        error += weight.T @ (shares @ departs) - (weight * shares).sum(axis=0)[:, None] * departs
    by_counter: FloatArray = error.T
    return by_counter


def _blocks(
    begin_ns: Int64Array, end_ns: Int64Array, slices: tuple[Int64Array, Int64Array, Int64Array], n_columns: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Samples a block at a time, and the share of each that each column ran; slices by ascending start."""
    starts_ns, stops_ns, columns = slices
    latest_ns = np.maximum.accumulate(stops_ns)
    for at in range(0, len(begin_ns), _BLOCK):
        here = slice(at, at + _BLOCK)
        begin, end = begin_ns[here], end_ns[here]
        ran = slice(*np.searchsorted(latest_ns, begin[:1], "right"), *np.searchsorted(starts_ns, end[-1:], "left"))
        yield here, _shares(begin, end, starts_ns[ran], stops_ns[ran], columns[ran], n_columns)


def _shares(
    begin_ns: Int64Array,
    end_ns: Int64Array,
    start_ns: Int64Array,
    stop_ns: Int64Array,
    column: Int64Array,
    n_columns: int,
) -> FloatArray:
    """The share of each sample that each column ran: float64 [n_samples, n_columns]."""
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
