"""Known traffic of random runs is recovered, within the error that is told."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.model.kernels.counters import _solve
from bragg.model.table import FloatArray

INTERVAL_NS = 100_000


def run(
    seed: int, durations_ns: list[int], truth: list[float], launches: int = 4000, noise: float = 0.02
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rates, errors of kernels in random order, sampled from their true rates with noise."""
    rng = np.random.default_rng(seed)
    column = rng.integers(0, len(truth), launches)
    duration = np.array(durations_ns)[column]
    gap = rng.integers(500, 3000, launches)
    start = np.cumsum(duration + gap) - duration
    n_samples = int(start[-1] + duration[-1]) // INTERVAL_NS + 1
    begin = np.arange(n_samples) * INTERVAL_NS
    edges = np.concatenate([begin, [begin[-1] + INTERVAL_NS]])
    at = np.concatenate([[0], np.column_stack([start, start + duration]).ravel()])
    steps = np.zeros(len(at))
    steps[2::2] = duration * np.array(truth)[column]
    total = np.interp(edges, at, np.cumsum(steps))
    value = np.diff(total) / INTERVAL_NS
    value = value * (1 + noise * rng.standard_normal(n_samples))
    rates, errors, time = _solve(begin, begin + INTERVAL_NS, value[:, None], start, duration, column, len(truth) + 2)
    return rates[0], errors[0], time


def test_kernels_much_shorter_than_a_sample_are_told_apart() -> None:
    truth = [2000.0, 100.0, 500.0]
    rates, errors, _ = run(1, [6000, 18_000, 69_000], truth)
    assert rates[:3] == pytest.approx(truth, rel=0.10)
    assert (errors[:3] < 0.25 * np.array(truth)).all()


def test_the_error_covers_the_truth_in_95_percent_of_cases() -> None:
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        truth = rng.uniform(50, 3000, 4).tolist()
        durations = rng.integers(5_000, 300_000, 4).tolist()
        rates, errors, _ = run(seed, durations, truth, launches=1500)
        covered += (np.abs(rates[:4] - truth) <= errors[:4]).tolist()
    assert np.mean(covered) >= 0.93  # 240 cases: 95 % but for one and a half standard errors


def test_what_ran_in_one_sample_is_not_told() -> None:
    # A memset of 300 ns before the first kernel: its sample alone decides, and says whatever that sample's noise was.
    rng = np.random.default_rng(3)
    begin, duration = np.arange(200) * INTERVAL_NS, rng.integers(20_000, 90_000, 200)
    value = (0.01 * duration + rng.standard_normal(200))[:, None]
    value[0] -= 100
    start, duration = np.append(begin, 95_000), np.append(duration, 300)
    column = np.append(np.ones(200, np.int64), 0)
    rates, errors, _ = _solve(begin, begin + INTERVAL_NS, value, start, duration, column, 4)
    assert rates[0, 0] < -10_000
    assert errors[0, 0] == np.inf
    assert rates[0, 1] == pytest.approx(1000, rel=0.01)


def test_kernels_that_always_overlap_are_not_told_apart() -> None:
    start = np.arange(100) * INTERVAL_NS
    both, column = np.repeat(start, 2), np.tile([0, 1], 100)
    value = np.full((100, 1), 5.0)
    _, errors, _ = _solve(start, start + INTERVAL_NS, value, both, np.full(200, INTERVAL_NS // 2), column, 4)
    assert np.isinf(errors[0, :2]).all()


def test_a_neighbour_whose_rate_changes_widens_the_error() -> None:
    """A product reads more where it begins and ends, beside the copies between such products."""
    interval_ns, product_ns, copy_ns = 500_000, 5_200_000, 176_000
    edge_ns, mean, at_edge, copy = 800_000, 900.0, 1000.0, 1505.0
    step = [(edge_ns, at_edge), (product_ns - 2 * edge_ns, mean), (edge_ns, at_edge), (copy_ns, copy)]
    lengths, rates_then = (np.array([part[i] for part in step] * 150) for i in (0, 1))
    ends = np.cumsum(lengths)
    total = np.append(0.0, np.cumsum(lengths * rates_then))
    begin = np.arange(int(ends[-1]) // interval_ns) * interval_ns
    edges = np.append(begin, begin[-1] + interval_ns)
    value = np.diff(np.interp(edges, np.append(0, ends), total)) / interval_ns
    start = np.arange(150) * (product_ns + copy_ns)
    starts = np.concatenate([start, start + product_ns])
    durations, column = np.repeat([product_ns, copy_ns], 150), np.repeat([0, 1], 150)
    rates, errors, _ = _solve(begin, begin + interval_ns, value[:, None], starts, durations, column, 4)
    assert abs(rates[0, 1] - copy) > 0.05 * copy  # what least squares cannot know
    assert abs(rates[0, 1] - copy) <= errors[0, 1]
