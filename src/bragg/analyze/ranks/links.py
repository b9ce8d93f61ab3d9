"""Process groups whose transfers take longer than those of other groups of the same kind: a slow link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.ranks.aligned import Group

_RATIO = 1.3
_LEAST_CALLS = 3


@dataclass(frozen=True)
class SlowLink:
    """Where transfers are slow.

    Attributes:
        ranks: Indices of those that all slow groups have in common.
        members: Indices of all members of slow groups.
        groups: Names of these groups.
        ratio: Time of their transfers over that of equal groups.
        cost_ns: What it costs in the whole run.
    """

    ranks: tuple[int, ...]
    members: frozenset[int]
    groups: tuple[str, ...]
    ratio: float
    cost_ns: float


def slow_links(groups: Sequence[Group]) -> SlowLink | None:
    """The slow link of a job; None: none is seen.

    What the last rank to arrive saw is the transfer alone. In one group of all ranks a link slows everyone, so groups
    of equal size and equal calls are compared.
    """
    slow: list[tuple[Group, float, float]] = []
    for group in groups:
        others = [other for other in groups if other is not group and _kind(other) == _kind(group)]
        if not others:
            continue
        usual = float(np.median([_transfer(other) for other in others]))
        own = _transfer(group)
        if own > _RATIO * usual > 0:
            slow.append((group, own / usual, (own - usual) * len(group.operation)))
    if not slow:
        return None
    sets = [set(each.members.tolist()) for each, _, _ in slow]
    common = set.intersection(*sets)
    if not common:
        return None
    names = tuple(group.name for group, _, _ in slow)
    ratio, cost = max(row[1] for row in slow), max(row[2] for row in slow)
    return SlowLink(tuple(sorted(common)), frozenset(set.union(*sets)), names, ratio, cost)


def _kind(group: Group) -> tuple[object, ...]:
    return len(group.members), tuple(group.operation[:64]), tuple(group.size_bytes[:64].tolist()), _is_enough(group)


def _is_enough(group: Group) -> bool:
    return len(group.operation) >= _LEAST_CALLS


def _transfer(group: Group) -> float:
    return float(np.nanmedian(group.transfer_ns))
