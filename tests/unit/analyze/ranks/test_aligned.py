from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.ranks.aligned import groups_of
from bragg.model.ranks.summary import RankSummary
from tests.unit.analyze.ranks.test_clocks import US, rank_summary

N_RANKS, N_COLLECTIVES = 150, 7  # three blocks of members


def ranks_with(duration_ns: np.ndarray, exposed_ns: np.ndarray) -> list[RankSummary]:
    """Ranks with such collectives; NaN: this one has none."""
    found = []
    for number, (lasts, alone) in enumerate(zip(duration_ns, exposed_ns, strict=True)):
        has = np.flatnonzero(~np.isnan(lasts))
        summary = rank_summary(number, np.arange(1, len(lasts) + 1) * 1_000 * US)
        columns = {"duration_ns": lasts[has].astype(np.int64), "exposed_ns": alone[has].astype(np.int64)}
        table = summary.collectives().take(has).replace(**columns)
        found.append(replace(summary, collectives=lambda table=table: table))
    return found


def test_blocks_of_members_add_up_to_what_all_of_them_say() -> None:
    random = np.random.default_rng(3)
    duration_ns = random.integers(100, 100_000, (N_RANKS, N_COLLECTIVES)).astype(np.float64)
    duration_ns[random.random(duration_ns.shape) < 0.2] = np.nan
    duration_ns[:, 4] = np.nan
    duration_ns[77, 4] = 5_000  # a collective that one rank alone has
    exposed_ns = np.floor(duration_ns * random.random(duration_ns.shape))
    (group,) = groups_of(ranks_with(duration_ns, exposed_ns))
    in_order = np.sort(duration_ns, axis=0)  # NaN last
    shared = np.delete(np.arange(N_COLLECTIVES), 4)
    n_recorded = (~np.isnan(duration_ns)).sum(axis=0)
    assert group.shape == (N_RANKS, N_COLLECTIVES)
    assert np.array_equal(group.transfer_ns, in_order[0])
    assert np.array_equal(group.second_ns, np.where(np.isnan(in_order[1]), np.inf, in_order[1]))
    assert group.last[shared].tolist() == np.nanargmin(duration_ns[:, shared], axis=0).tolist()
    assert group.last[4] == -1
    assert group.n_recorded.tolist() == n_recorded.tolist()
    assert group.n_of_member.tolist() == (~np.isnan(duration_ns)).sum(axis=1).tolist()
    cost_ns = np.nansum(np.fmin(duration_ns - in_order[0], exposed_ns), axis=0) / np.maximum(n_recorded - 1, 1)
    np.testing.assert_allclose(group.cost_ns[shared], cost_ns[shared])
    assert group.cost_ns[4] == 0
    chosen = group.times([149, 3])
    assert np.array_equal(chosen.duration_ns, duration_ns[[149, 3]], equal_nan=True)
    assert np.array_equal(chosen.exposed_ns, exposed_ns[[149, 3]], equal_nan=True)
