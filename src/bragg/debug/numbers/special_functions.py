"""Special functions that NumPy lacks, in float64: inverse error functions, Bessel functions.

Source of the expansions: Abramowitz and Stegun, Handbook of Mathematical Functions, chapters 7 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

_NORMAL = NormalDist()
_EULER = 0.57721566490153286
# From here on the asymptotic expansion of Hankel is exact to float64.
_FAR = 30.0


def normcdfinv(p: float) -> float:
    """The place where the normal distribution function is p."""
    if not 0 < p < 1:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    return _NORMAL.inv_cdf(p)


def erfinv(x: float) -> float:
    """The place where the error function is x."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) > 0.5:
        return math.copysign(-_NORMAL.inv_cdf((1 - abs(x)) / 2) / math.sqrt(2), x)
    place = x * math.sqrt(math.pi) / 2
    for _ in range(6):
        place -= (math.erf(place) - x) / (2 / math.sqrt(math.pi) * math.exp(-place * place))
    return place


def erfcinv(x: float) -> float:
    """The place where the complementary error function is x."""
    if not 0 < x < 2:
        return math.inf if x == 0 else -math.inf if x == 2 else math.nan
    return erfinv(1 - x) if 0.5 < x < 1.5 else -normcdfinv(x / 2) / math.sqrt(2)


def erfcx(x: float) -> float:
    """`exp(x^2) * erfc(x)`."""
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    inverse = 1 / (2 * x * x)
    total = 1.0
    for factor in (11, 9, 7, 5, 3, 1):
        total = 1 - factor * inverse * total
    return total / (x * math.sqrt(math.pi))


def _sign(k: int) -> float:
    """-1 to the power of k."""
    return -1.0 if k % 2 else 1.0


def bessel_i(order: int) -> Callable[[float], float]:
    """The modified Bessel function of an order."""

    def function(x: float) -> float:
        if abs(x) > 713:
            return math.copysign(math.inf, x if order % 2 else 1)
        term = total = (x / 2) ** order / math.factorial(order)
        k = 0
        while abs(term) > abs(total) * 1e-17:
            k += 1
            term *= (x / 2) ** 2 / (k * (k + order))
            total += term
        return total

    return function


def bessel_j(order: int, x: float) -> float:
    """The Bessel function of the first kind."""
    if order < 0:
        return _sign(order) * bessel_j(-order, x)
    if math.isinf(x):
        return 0.0
    if x < 0:
        return _sign(order) * bessel_j(order, -x)
    if x > _FAR and order < 2:
        return _hankel(order, x)[0]
    if x > max(_FAR, order):
        return _forward(order, x, bessel_j(0, x), bessel_j(1, x))
    return _backward(x, order)[order]


def bessel_y(order: int, x: float) -> float:
    """The Bessel function of the second kind."""
    if order < 0:
        return _sign(order) * bessel_y(-order, x)
    if x <= 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0 if x > 0 else math.nan
    if order > 1:
        return _forward(order, x, bessel_y(0, x), bessel_y(1, x))
    if x > _FAR:
        return _hankel(order, x)[1]
    values = _backward(x, 1)
    logarithm = math.log(x / 2) + _EULER
    if order == 0:
        tail = sum(_sign(k) * values[2 * k] / k for k in range(1, len(values) // 2))
        return 2 / math.pi * (logarithm * values[0] - 2 * tail)
    tail = sum(_sign(k) * (2 * k + 1) / (k * (k + 1)) * values[2 * k + 1] for k in range(1, len(values) // 2 - 1))
    return 2 / math.pi * (-values[0] / x + (logarithm - 1) * values[1] - tail)


def _backward(x: float, order: int) -> list[float]:
    """J of all orders by Miller's recurrence, made true by `J0 + 2 J2 + 2 J4 + ... = 1`."""
    if x == 0:
        return [1.0] + [0.0] * (order + 8)
    count = 2 * ((int(max(x, order)) + 60) // 2)
    values = [0.0] * (count + 2)
    values[count] = 1e-300
    for k in range(count, 0, -1):
        values[k - 1] = 2 * k / x * values[k] - values[k + 1]
        if abs(values[k - 1]) > 1e250:
            values = [value * 1e-250 for value in values]
    total = values[0] + 2 * sum(values[2 : count + 1 : 2])
    return [value / total for value in values]


def _forward(order: int, x: float, zeroth: float, first: float) -> float:
    values = [zeroth, first]
    for k in range(1, order):
        values.append(2 * k / x * values[k] - values[k - 1])
    return values[order]


def _hankel(order: int, x: float) -> tuple[float, float]:
    """J and Y far from the origin."""
    mu, term = 4.0 * order * order, 1.0
    even, odd = 1.0, 0.0
    for k in range(1, 60):
        following = term * (mu - (2 * k - 1) ** 2) / (k * 8 * x)
        if abs(following) > abs(term) or abs(following) < 1e-18:
            break
        term = following
        sign = _sign(k // 2)
        even, odd = (even + sign * term, odd) if k % 2 == 0 else (even, odd + sign * term)
    # The phase is x - (2 order + 1) pi / 4; sine and cosine of the sum, so that x keeps its digits.
    sine, cosine = math.sin(x), math.cos(x)
    c, s = math.cos((2 * order + 1) * math.pi / 4), math.sin((2 * order + 1) * math.pi / 4)
    cos_phase, sin_phase = cosine * c + sine * s, sine * c - cosine * s
    scale = math.sqrt(2 / (math.pi * x))
    return scale * (even * cos_phase - odd * sin_phase), scale * (even * sin_phase + odd * cos_phase)
