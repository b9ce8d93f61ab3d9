"""How fast collectives are: the bus bandwidth, which does not depend on how many ranks take part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.peaks import NVLINKS
from bragg.analyze.ranks.aligned import Group
from bragg.model.ranks.summary import RankSummary


@dataclass(frozen=True)
class Transfers:
    """The collectives of one operation, size, number of ranks, and way.

    Attributes:
        operation: What they do.
        n_ranks: Ranks of a group.
        size_bytes: Of the input of each rank.
        way: How NCCL did it: `RING LL, 4 channels`; empty: not known.
        count: How many.
        total_ns: What the last ranks to arrive saw of all of them: transfer without waiting.
        bus_bytes_per_s: Of the median one.
        link_bytes_per_s: What NVLink of a GPU carries in one direction; None: not known, or ranks of several hosts.
    """

    operation: str
    n_ranks: int
    size_bytes: int
    way: str
    count: int
    total_ns: float
    bus_bytes_per_s: float
    link_bytes_per_s: float | None


def transfers_of(groups: Sequence[Group], ranks: Sequence[RankSummary], limit: int) -> list[Transfers]:
    """Those whose size is known, the ones that take longest first."""
    times: dict[tuple[str, int, int, str, float | None], list[float]] = {}
    ways = {key: way for rank in ranks for key, way in rank.ways.items()}
    for group in groups:
        link = _link_of([ranks[member] for member in group.members.tolist()])
        rows = zip(group.operation, group.size_bytes.tolist(), group.transfer_ns.tolist(), strict=True)
        for operation, size, took_ns in rows:
            if size > 0 and took_ns > 0 and bus_factor(operation, len(group.members)) > 0:
                way = ways.get((group.name, operation, size), "")
                times.setdefault((operation, len(group.members), size, way, link), []).append(took_ns)
    found = [
        Transfers(
            operation,
            n,
            size,
            way,
            len(took),
            sum(took),
            size * bus_factor(operation, n) * 1e9 / float(np.median(took)),
            link,
        )
        for (operation, n, size, way, link), took in times.items()
    ]
    return sorted(found, key=lambda each: -each.total_ns)[:limit]


def _link_of(members: Sequence[RankSummary]) -> float | None:
    """NVLink between ranks of one host, on boards that have it."""
    places = {(rank.host, rank.device) for rank in members}
    if len(places) != 1:
        return None
    ((host, device),) = places
    return next((rate for board, rate in NVLINKS if host and re.search(board, device)), None)


def bus_factor(operation: str, n_ranks: int) -> float:
    """Bytes that a link carries for each byte of the input; 0: not known.

    Source: nccl-tests, doc/PERFORMANCE.md, in which the size of an all-gather is that of its output.
    """
    return {
        "all-reduce": 2 * (n_ranks - 1) / n_ranks,
        "all-gather": float(n_ranks - 1),
        "reduce-scatter": (n_ranks - 1) / n_ranks,
        "all-to-all": (n_ranks - 1) / n_ranks,
        "broadcast": 1.0,
        "reduce": 1.0,
    }.get(operation, 0.0)
