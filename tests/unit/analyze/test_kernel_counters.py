"""Known traffic of random runs is recovered, within the error that is told."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.kernel_counters import _solve
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
    return _solve(begin, begin + INTERVAL_NS, value, start, duration, column, len(truth) + 2)


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


def test_kernels_that_always_overlap_are_not_told_apart() -> None:
    start = np.arange(100) * INTERVAL_NS
    both, column = np.repeat(start, 2), np.tile([0, 1], 100)
    value = np.full(100, 5.0)
    _, errors, _ = _solve(start, start + INTERVAL_NS, value, both, np.full(200, INTERVAL_NS // 2), column, 4)
    assert np.isinf(errors[:2]).all()
