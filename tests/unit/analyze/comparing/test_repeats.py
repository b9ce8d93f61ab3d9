from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.comparing.repeats import FALSE_ALARMS, Noise, noise_of, spread_of, student_quantile

HOST = noise_of("host_time", "ns")
ROUNDS = 2_000


def runs(n_runs: int, deviation: float, *, disturbed: float = 0.0) -> np.ndarray:
    """Many sets of runs of one program, [n_runs, ROUNDS]; some runs take up to 15 % longer."""
    rng = np.random.default_rng(n_runs)
    values = 1 + deviation * rng.standard_normal((n_runs, ROUNDS))
    return values + (rng.random(values.shape) < disturbed) * rng.uniform(0.03, 0.15, values.shape)


def found(before: np.ndarray, after: np.ndarray, *, paired: bool = False) -> float:
    """The share of comparisons in which `after` counts as slower."""
    spread = spread_of(before, after, HOST, paired=paired)
    return float((spread.after - spread.before > spread.margin()).mean())


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 63.657), (3, 5.841), (9, 3.250), (30, 2.750), (1000, 2.581)])
def test_quantiles_are_those_of_students_table(freedom: int, quantile: float) -> None:
    assert student_quantile(0.995, freedom) == pytest.approx(quantile, abs=5e-4)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("n_runs", [1, 5, 10])
@pytest.mark.parametrize("disturbed", [0.0, 0.1])
def test_a_program_is_no_slower_than_itself(n_runs: int, disturbed: float, paired: bool) -> None:
    if n_runs == 1 and (paired or disturbed):
        pytest.skip("one run cannot be paired, nor tell that it was disturbed")
    both = runs(2 * n_runs, 0.015, disturbed=disturbed)
    assert found(both[:n_runs], both[n_runs:], paired=paired) <= FALSE_ALARMS


def test_ten_runs_in_turn_find_a_slowdown_of_3_percent() -> None:
    both = runs(20, 0.009)
    assert found(both[:10], 1.03 * both[10:], paired=True) >= 0.95


def test_drift_between_sets_is_not_a_change_and_pairs_are_free_of_it() -> None:
    both = runs(20, 0.005)
    assert found(both[:10], 1.015 * both[10:]) <= FALSE_ALARMS
    drift = 1 + 0.03 * np.linspace(0, 1, 10)[:, np.newaxis]
    before, after = both[:10] * drift, 1.03 * both[10:] * drift
    assert found(before, after, paired=True) >= 0.95
    assert found(before, before, paired=True) == 0


def test_one_disturbed_run_of_five_does_not_move_the_location() -> None:
    disturbed = np.array([[1.0], [1.01], [0.99], [1.0], [7.0]])
    spread = spread_of(disturbed, disturbed, HOST, paired=False)
    assert spread.before[0] == pytest.approx(1.0, abs=0.01)
    assert spread.margin()[0] < 0.1


def test_what_is_counted_has_no_noise() -> None:
    spread = spread_of(np.array([[7.0]]), np.array([[8.0]]), noise_of("gpu_count", "1"), paired=False)
    assert spread.margin()[0] == 0
    assert spread_of(np.zeros((1, 1)), np.ones((1, 1)), Noise(0.01, 0.0, 0.01), paired=False).margin()[0] < 1
