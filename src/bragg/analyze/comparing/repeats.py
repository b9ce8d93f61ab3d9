"""Whether values of repeated runs differ by more than their noise: one test for one run each and for ten.

The location of a set is its mean without the fifth of the runs at either end, so one disturbed run in five does not
matter. Its variance is that of Yuen's test, from the same runs with both ends pulled in. What is usual for the metric
counts as `_PRIOR_RUNS` further runs: one run each has no other variance, and two runs that agree by chance do not make
a difference of 0.1 % certain. Sets that were recorded one after the other also differ by the machine's drift, which no
number of repeats shows; runs that alternate are compared in pairs, where the drift cancels.

`benchmarks/diff_gate.py` measures false alarms and slowdowns found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from bragg.model.table import FloatArray

FALSE_ALARMS = 1 / 200
"""How often a program that did not change may count as slower."""
_TRIM = 5  # of so many runs, one at either end
_PRIOR_RUNS = 3


@dataclass(frozen=True)
class Noise:
    """How a metric varies between runs of one program, as shares of its value.

    Attributes:
        deviation: Standard deviation of neighbouring runs.
        drift: Standard deviation of the machine's state between two sets of runs.
        alone: As `deviation`, for one run, which other programs may have disturbed.
    """

    deviation: float
    drift: float
    alone: float


# Neighbouring runs of 0.3 s on a quiet virtual machine: 1.9 %; where others work, one run in twenty takes 30 % longer.
_OF_HOST = Noise(0.015, 0.01, 0.03)
# Likewise without the time in which others had the core: 1.2 %, with up to eight programs on two cores.
_OF_HOST_ALONE = Noise(0.01, 0.01, 0.03)
# Matrix products on an H100: 0.02 % from one burst to the next, 0.2 % between processes (benchmarks/diff_gate.py
# --gpu). Wider here, because clocks fall with temperature and power.
_OF_GPU = Noise(0.0075, 0.003, 0.0075)
_EXACT = Noise(0.0, 0.0, 0.0)


def noise_of(metric: str, unit: str, *, is_undisturbed: bool = False) -> Noise:
    """The usual noise of a metric; none where it counts.

    Args:
        metric: Its name.
        unit: Its unit.
        is_undisturbed: Values are without the time in which other programs had the core of this one.
    """
    if unit not in ("ns", "us", "ms", "s"):
        return _EXACT
    if is_undisturbed:
        return _OF_HOST_ALONE
    return _OF_GPU if metric.startswith("gpu_") else _OF_HOST


@dataclass(frozen=True, eq=False)
class Spread:
    """The change between two sets of runs, for each of n values.

    Attributes:
        before: float64 [n], location of the runs before.
        after: float64 [n], of those after.
        error: float64 [n], standard error of `after - before`.
        freedom: Degrees of freedom of that error.
    """

    before: FloatArray
    after: FloatArray
    error: FloatArray
    freedom: int

    def margin(self, false_alarms: float = FALSE_ALARMS) -> FloatArray:
        """Half the width of the interval of the change, float64 [n]: beyond it on one side are so many false alarms."""
        width: FloatArray = student_quantile(1 - false_alarms, self.freedom) * self.error
        return width


def spread_of(before: FloatArray, after: FloatArray, noise: Noise, *, paired: bool) -> Spread:
    """Locations and noise of two sets of runs.

    Args:
        before: float64 [n_runs, n].
        after: float64 [n_runs, n]; the number of runs may be another one, unless they are paired.
        noise: What is usual.
        paired: Runs of equal row were recorded beside each other.
    """
    x, y = _Trimmed.of(before), _Trimmed.of(after)
    # What is new has no value before.
    deviation = noise.alone if min(len(before), len(after)) == 1 else noise.deviation
    prior = (deviation * np.maximum(np.abs(x.mean), np.abs(y.mean))) ** 2
    if paired:
        change = _Trimmed.of(after - before)
        freedom = _PRIOR_RUNS + change.n_kept - 1
        variance = (2 * _PRIOR_RUNS * prior + change.squares) / freedom / change.n_kept
        return Spread(x.mean, x.mean + change.mean, np.sqrt(variance), freedom)
    freedom = _PRIOR_RUNS + x.n_kept + y.n_kept - 2
    variance = (_PRIOR_RUNS * prior + x.squares + y.squares) / freedom * (1 / x.n_kept + 1 / y.n_kept)
    is_repeated = len(before) > 1 or len(after) > 1
    drift = (noise.drift * np.maximum(np.abs(x.mean), np.abs(y.mean))) ** 2 if is_repeated else 0.0
    return Spread(x.mean, y.mean, np.sqrt(variance + 2 * drift), freedom)


@dataclass(frozen=True, eq=False)
class _Trimmed:
    mean: FloatArray
    squares: FloatArray
    n_kept: int

    @classmethod
    def of(cls, values: FloatArray) -> _Trimmed:
        """Mean without both ends, and the sum of squares of all with the ends pulled in: float64 [n]."""
        ordered = np.sort(values, axis=0)
        n_cut = len(ordered) // _TRIM
        kept = ordered[n_cut : len(ordered) - n_cut]
        pulled = np.clip(ordered, kept[0], kept[-1])
        return cls(kept.mean(axis=0), ((pulled - pulled.mean(axis=0)) ** 2).sum(axis=0), len(kept))


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's distribution above its middle.

    Args:
        probability: At least 0.5, less than 1.
        freedom: Degrees of freedom, at least 1.
    """
    # With t = sqrt(freedom) * tan(angle) the density is cos(angle) ** (freedom - 1): smooth, on a bounded interval.
    angle = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(angle) ** (freedom - 1)
    mass = np.append(0, np.cumsum((density[1:] + density[:-1]) / 2))
    return math.sqrt(freedom) * math.tan(float(np.interp(2 * probability - 1, mass / mass[-1], angle)))
