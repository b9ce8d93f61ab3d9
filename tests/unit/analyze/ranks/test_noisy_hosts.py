"""Ranks whose hosts are slow for a while by turns, as those of two H100 were: 10 to 17 % apart without any fault."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.ranks.lateness import Lateness
from bragg.analyze.ranks.stragglers import stragglers_of
from bragg.model.table import FloatArray

_STEP_NS = 70e6
_N_JOBS = 25


def _times(n_ranks: int, n_steps: int, spread: float, alike: float, seed: int) -> FloatArray:
    """How long each host takes for each step; neighbouring steps are alike."""
    random = np.random.default_rng(seed)
    drift = random.standard_normal((n_ranks, n_steps))
    for step in range(1, n_steps):
        drift[:, step] = alike * drift[:, step - 1] + np.sqrt(1 - alike**2) * drift[:, step]
    times: FloatArray = 1 + spread * drift + 0.03 * random.standard_normal((n_ranks, n_steps))
    return times


def _named(times: FloatArray, *, startup_wall_ns: float = 0.0, startup_ns: float = 0.0) -> list[tuple[int, str]]:
    last = times.argmax(axis=0)
    cost = np.zeros_like(times)
    for step, rank in enumerate(last.tolist()):
        cost[rank, step] = times[rank, step] - np.delete(times[:, step], rank).mean()
    startup = np.zeros(len(times))
    startup[1] = startup_ns
    step_ns = times.max(axis=0) * _STEP_NS
    found = Lateness(cost * _STEP_NS, step_ns, startup, True, startup_wall_ns)
    stragglers = stragglers_of(found, [], np.zeros(len(times)), is_whole=True)
    return [(each.index, each.when.value) for each in stragglers]


@pytest.mark.parametrize(("n_ranks", "n_steps"), [(2, 39), (4, 39), (8, 39), (4, 200)])
@pytest.mark.parametrize(("spread", "alike"), [(0.05, 0.0), (0.1, 0.0), (0.1, 0.5)])
def test_no_rank_is_named_where_hosts_vary_alike(n_ranks: int, n_steps: int, spread: float, alike: float) -> None:
    found = [_named(_times(n_ranks, n_steps, spread, alike, seed)) for seed in range(_N_JOBS)]
    assert sum(map(bool, found)) <= 1, found


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize(
    ("when", "late", "steps"),
    [
        ("always", 0.35, slice(None)),
        ("since", 0.35, slice(20, None)),
        ("once", 3.5, slice(20, 21)),
        ("sometimes", 1.0, slice(None, None, 5)),
    ],
)
def test_a_rank_that_is_late_by_more_than_hosts_vary_is_named(
    n_ranks: int, when: str, late: float, steps: slice
) -> None:
    n_right = 0
    for seed in range(_N_JOBS):
        times = _times(n_ranks, 39, 0.07, 0.5, seed)
        times[1, steps] += late
        n_right += _named(times) == [(1, when)]
    assert n_right >= 0.95 * _N_JOBS


def test_long_steps_that_come_to_all_ranks_alike_name_none() -> None:
    times = _times(2, 200, 0.05, 0.0, seed=1)
    times[0, 10::20] += 0.6
    times[1, 20::20] += 0.6
    assert _named(times) == []
    times[1, ::7] += 0.6
    assert _named(times) == [(1, "sometimes")]


@pytest.mark.parametrize(("wall_s", "is_named"), [(1.0, False), (0.7, True)])
def test_a_late_start_is_most_of_what_the_start_took(wall_s: float, is_named: bool) -> None:
    times = _times(2, 39, 0.01, 0.0, seed=1)
    named = _named(times, startup_ns=0.45e9, startup_wall_ns=wall_s * 1e9)
    assert named == [(1, "start")] * is_named


def test_thousands_of_long_steps_are_counted_without_overflow() -> None:
    times = _times(2, 3000, 0.01, 0.0, seed=1)
    times[0, ::2] += 0.6
    times[1, 1::2] += 0.6
    assert _named(times) == []


def test_a_rank_that_is_late_in_each_step_is_always_late_however_much_it_varies() -> None:
    """Milliseconds that rank 0 of two H100 cost the other in each step, of 60; by the clock of their host, too."""
    cost_ms = [
        *[36.3, 13.1, 12.7, 12.0, 12.5, 11.4, 12.2, 6.2, 5.3, 7.9, 22.2, 14.6, 4.5, 5.6, 12.6, 12.4, 12.7, 14.3, 77.5],
        *[21.1, 13.4, 3.8, 3.4, 4.2, 1.9, 2.1, 1.7, 4.3, 5.3, 4.7, 5.0, 5.3, 15.4, 23.0, 35.2, 30.2, 20.1, 19.7, 17.6],
    ]
    found = Lateness(np.array([cost_ms, [0.0] * 39]) * 1e6, np.full(39, 60.6e6), np.zeros(2), True)
    named = stragglers_of(found, [], np.zeros(2), is_whole=True)
    assert [(each.index, each.when.value, len(each.steps)) for each in named] == [(0, "always", 39)]
