"""The clocks of ranks compared, as far as there is data: one host, an exchange of times, the ends of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bragg.analyze.ranks.aligned import Group
from bragg.model import Profile
from bragg.model.ranks.clock import RankClock
from bragg.model.ranks.summary import RankSummary
from bragg.model.table import BoolArray, FloatArray, Int64Array

_LEAST_COLLECTIVES = 8
_ROUNDS, _OUTLIER = 4, 4.0  # times the spread: an end that a late thread or a clock's step has moved
_SPREAD = 1.4826  # of the median deviation, to be a standard deviation
_FAR_OFF_NS = 1e9
_N_NAMED = 3
_FAR_APART = 100_000  # times the time on the way: a drift of 10 ppm is seen then, which is what clocks of hosts have
# The recorder's clock follows the monotonic clock of its host within this; see native/tests/test_clock.cpp.
_SAME_HOST_NS = 1_000.0


class Basis(Enum):
    """What an alignment rests on."""

    REFERENCE = "reference"
    SAME_HOST = "same host"
    EXCHANGE = "exchange"
    COLLECTIVES = "collectives"


@dataclass(frozen=True)
class Alignment:
    """Makes times of one rank times of the first one, by a line.

    Attributes:
        offset_ns: Added to a time of `around_ns`.
        drift: Added for each nanosecond after it.
        around_ns: By the rank's clock.
        uncertainty_ns: Of an exchange half the time on the way. Of collectives how far their ends scatter around the
            line, and two standard errors: all ranks leave one nearly together, but not at the same moment.
        basis: What it rests on; of another rank of its host, what that one rests on.
    """

    offset_ns: float = 0.0
    drift: float = 0.0
    around_ns: int = 0
    uncertainty_ns: float = 0.0
    basis: Basis = Basis.REFERENCE

    def aligned(self, time_ns: Int64Array) -> Int64Array:
        """Times of the rank, of any shape, as times of the first one."""
        shift = self.offset_ns + self.drift * (time_ns - self.around_ns)
        return time_ns + np.round(shift).astype(np.int64)


def alignments(ranks: Sequence[RankSummary], groups: Sequence[Group]) -> list[Alignment | None]:
    """How to put the times of each rank on the clock of the first one; None: no data says how.

    Args:
        ranks: The ranks.
        groups: Their process groups, the one with most collectives first.
    """
    found: dict[int, Alignment] = {0: Alignment()} if ranks else {}
    _spread_over_hosts(found, ranks)
    exchanged = _of_exchanges(ranks)
    usable = [group for group in groups if not group.n_unequal]
    while True:
        # The first rank of a host stands for the host: two of them by collectives would lose that they are one clock.
        new = dict(_of_collectives(found, usable))
        for index, each in exchanged.items():
            if index not in found and (index not in new or each.uncertainty_ns < new[index].uncertainty_ns):
                new[index] = each
        if not new:
            return [found.get(index) for index in range(len(ranks))]
        hosts: set[str] = set()
        for index, each in sorted(new.items(), key=lambda item: (item[1].uncertainty_ns, item[0])):
            boot = ranks[index].clock.boot
            if not boot or boot not in hosts:
                found[index] = each
                hosts.add(boot)
        _spread_over_hosts(found, ranks)


def on_first_clock(profile: Profile, alignment: Alignment) -> Profile:
    """The timeline of a rank by the clock of the first one."""
    slices, counters = profile.slices, profile.counters
    return replace(
        profile,
        slices=slices.replace(start_ns=alignment.aligned(slices.start_ns)),
        counters=counters.replace(time_ns=alignment.aligned(counters.time_ns)),
    )


def clock_notes(ranks: Sequence[RankSummary], found: Sequence[Alignment | None]) -> Iterator[str]:
    """How far the clocks of several hosts can be compared, and which are far apart."""
    hosts = list(dict.fromkeys(rank.host for rank in ranks))
    if len(hosts) < 2:
        return
    without = [rank.host for rank, each in zip(ranks, found, strict=True) if each is None and rank.host != hosts[0]]
    if without:
        yield f"no data aligns the clock of {_named(without)} with that of {hosts[0]}: their times are not compared"
    known = [each for each in found if each is not None]
    bases = [basis.value for basis in (Basis.EXCHANGE, Basis.COLLECTIVES) if any(each.basis is basis for each in known)]
    if bases:
        most_us = max(each.uncertainty_ns for each in known) / 1e3
        yield f"clocks of {len(hosts)} hosts are aligned by {' and '.join(bases)}, within {most_us:.3g} us"
    far = {
        rank.host: each.offset_ns
        for rank, each in zip(ranks, found, strict=True)
        if each is not None and abs(each.offset_ns) > _FAR_OFF_NS
    }
    for host, offset_ns in list(far.items())[:_N_NAMED]:
        way = "behind" if offset_ns > 0 else "ahead of"
        yield f"the clock of {host} is {abs(offset_ns) / 1e9:,.1f} s {way} that of {hosts[0]}"


def _named(hosts: Sequence[str]) -> str:
    names = list(dict.fromkeys(hosts))
    return ", ".join(names[:_N_NAMED]) + (f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else "")


def _spread_over_hosts(found: dict[int, Alignment], ranks: Sequence[RankSummary]) -> None:
    """Align the other ranks of the hosts of those that are."""
    of_boot: dict[str, int] = {}
    for index in found:
        if (clock := ranks[index].clock).boot and clock.ahead_ns is not None:
            of_boot.setdefault(clock.boot, index)
    for index, rank in enumerate(ranks):
        if index in found or (first := of_boot.get(rank.clock.boot)) is None or rank.clock.ahead_ns is None:
            continue
        host, other = found[first], ranks[first].clock
        assert other.ahead_ns is not None
        apart_ns = other.ahead_ns - rank.clock.ahead_ns
        basis = Basis.SAME_HOST if host.basis is Basis.REFERENCE else host.basis
        found[index] = Alignment(
            host.offset_ns + apart_ns,
            host.drift,
            host.around_ns - apart_ns,
            host.uncertainty_ns + _SAME_HOST_NS,
            basis,
        )


def _of_exchanges(ranks: Sequence[RankSummary]) -> dict[int, Alignment]:
    """Ranks that have asked rank 0 for its time, by its answers."""
    if not ranks or ranks[0].rank != 0:
        return {}
    return {index: _of_answers(rank.clock) for index, rank in enumerate(ranks) if index and rank.clock.exchanges}


def _of_answers(clock: RankClock) -> Alignment:
    """Through the first and the last answer, or the only one."""
    first, last = clock.exchanges[0], clock.exchanges[-1]
    apart_ns, way_ns = last[0] - first[0], max(first[2], last[2])
    drift = (last[1] - first[1]) / apart_ns if apart_ns > _FAR_APART * way_ns else 0.0
    return Alignment(float(first[1]), drift, first[0], way_ns / 2, Basis.EXCHANGE)


def _of_collectives(found: dict[int, Alignment], groups: Sequence[Group]) -> Iterator[tuple[int, Alignment]]:
    """Ranks that share a process group with one that is aligned."""
    seen: set[int] = set()
    for group in groups:
        members = group.members.tolist()
        known = next((row for row, index in enumerate(members) if index in found), None)
        if known is None:
            continue
        reference, ends_ns = found[members[known]], group.times([known]).end_ns[0]
        for row, index in enumerate(members):
            if index in found or index in seen:
                continue
            line = _line(group.times([row]).end_ns[0], ends_ns, group.epoch_ns, reference)
            if line is not None:
                seen.add(index)
                yield index, line


def _line(own: FloatArray, other: FloatArray, epoch_ns: int, reference: Alignment) -> Alignment | None:
    """The line through what the clock of an aligned rank is ahead at the ends of the same collectives.

    Args:
        own: Ends by the clock of the rank, after `epoch_ns`; NaN: none: [n_collectives].
        other: By that of the aligned rank: [n_collectives].
        epoch_ns: What both count from.
        reference: Of the aligned rank.
    """
    is_shared = ~(np.isnan(own) | np.isnan(other))
    if is_shared.sum() < _LEAST_COLLECTIVES:
        return None
    own = own[is_shared]
    shift = reference.offset_ns + reference.drift * (other[is_shared] - (reference.around_ns - epoch_ns))
    ahead = other[is_shared] + shift - own
    middle = float(np.median(own))
    x = own - middle
    is_used: BoolArray = np.ones(len(x), np.bool_)
    slope = level = spread = 0.0
    for _ in range(_ROUNDS):
        slope, level = _least_squares(x[is_used], ahead[is_used])
        rest = np.abs(ahead - level - slope * x)
        spread = float(np.median(rest[is_used])) * _SPREAD
        is_used = rest <= max(_OUTLIER * spread, 1.0)
    uncertainty_ns = spread / _SPREAD + 2 * spread / np.sqrt(is_used.sum()) + reference.uncertainty_ns
    around_ns = epoch_ns + round(middle)
    return Alignment(level, slope, around_ns, float(uncertainty_ns), Basis.COLLECTIVES)


def _least_squares(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and level of a line."""
    middle = float(x.mean())
    around = x - middle
    squares = float(around @ around)
    slope = float(around @ y) / squares if squares else 0.0
    return slope, float(y.mean()) - slope * middle
