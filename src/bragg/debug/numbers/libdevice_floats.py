"""Functions of libdevice on arrays of float32 and float64.

Source: CUDA libdevice user's guide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bragg.debug.numbers import special_functions
from bragg.debug.numbers.directed import operate
from bragg.debug.numbers.mathematics import each, erf, exp2_flushed, through_float64
from bragg.debug.numbers.rounding import flushed
from bragg.model.table import Array

Function = Callable[..., Array]


def _gamma_log(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _round_half_away(x: Array) -> Array:
    result: Array = np.copysign(np.floor(np.abs(x) + np.where(np.abs(x) < 2**22, 0.5, 0).astype(x.dtype)), x)
    return result


def _logb(x: Array) -> Array:
    """The exponent of two."""
    plain = np.frexp(x)[1] - 1.0
    return np.where(np.isfinite(x), np.where(x == 0, -np.inf, plain), np.abs(x)).astype(x.dtype)


def _half_turns(x: Array, quarter: int) -> Array:
    """The sine of pi times x, so many quarters of a turn further; exact at whole and half numbers."""
    halves = np.rint(2 * x)
    rest = np.pi * (x - halves / 2)
    turned = np.mod(halves + quarter, 4.0)
    wave = np.where(turned % 2 == 0, np.sin(rest), np.cos(rest))
    return np.asarray(np.where(turned >= 2, 0 - wave, 0 + wave))


def _sinpi(x: Array) -> Array:
    return np.where(np.trunc(x) == x, x * 0, _half_turns(x, 0))


def _gamma(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def _norm(*sides: Array) -> Array:
    total = sum(side.astype(np.float64) ** 2 for side in sides)
    infinite = np.any([np.isinf(side) for side in sides], axis=0)
    return np.where(infinite, np.inf, np.sqrt(total)).astype(sides[0].dtype)


def _high_reciprocal(x: Array) -> Array:
    """The upper half of the reciprocal's bits."""
    bits = (1 / x).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return np.asarray(bits.view(np.float64))


def _quotient(x: Array, y: Array) -> Array:
    """Division by the reciprocal, which is zero for divisors above 2^126."""
    is_far = (np.abs(y) > 2.0**126) & np.isfinite(y)
    return np.where(is_far, np.where(np.isfinite(x), np.copysign(np.float32(0), x * y), np.nan), x / y).astype(x.dtype)


_IN_FLOAT64: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt", "hypot")},
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "sinpi": _sinpi,
    "cospi": lambda x: _half_turns(x, 1),
    "normcdf": lambda x: 0.5 * (1 + erf(x / math.sqrt(2))),
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": lambda *sides: 1 / _norm(*sides),
    "rnorm4d": lambda *sides: 1 / _norm(*sides),
    "remainder": lambda x, y: each(math.remainder)(x, y),
    "lgamma": each(_gamma_log),
    "tgamma": each(_gamma),
    "erfc": each(math.erfc),
    "erfinv": each(special_functions.erfinv),
    "erfcinv": each(special_functions.erfcinv),
    "erfcx": each(special_functions.erfcx),
    "normcdfinv": each(special_functions.normcdfinv),
    "cyl_bessel_i0": each(special_functions.bessel_i(0)),
    "cyl_bessel_i1": each(special_functions.bessel_i(1)),
    "j0": each(lambda x: special_functions.bessel_j(0, x)),
    "j1": each(lambda x: special_functions.bessel_j(1, x)),
    "y0": each(lambda x: special_functions.bessel_y(0, x)),
    "y1": each(lambda x: special_functions.bessel_y(1, x)),
}

_FUNCTIONS: dict[str, Function] = {
    **{name: through_float64(function) for name, function in _IN_FLOAT64.items()},
    "erf": erf,
    "sqrt": np.sqrt,
    "fabs": np.abs,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": _round_half_away,
    "logb": _logb,
    "fmod": np.fmod,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "min": np.fmin,
    "max": np.fmax,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0)).astype(x.dtype),
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "fma": lambda x, y, z: operate("fma", "rn", x, y, z),
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype),
    "rcp64h": _high_reciprocal,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(np.float32(10), x),
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_tanhf": np.tanh,
    "fast_powf": np.power,
    "fast_dividef": _quotient,
}


def _directed(name: str, mode: str) -> Function:
    return lambda *operands: operate(name, mode, *operands)


_FUNCTIONS.update(
    {
        f"{name}_{mode}": _directed(name, mode)
        for name in ("add", "sub", "mul", "div", "fma", "sqrt", "rcp")
        for mode in ("rn", "rz", "rd", "ru")
    }
)


def _is_subnormal(x: Array) -> Array:
    return np.asarray((x != 0) & (flushed(x) == 0))


def _nextafter(x: Array, y: Array) -> Array:
    """The neighbours of a float32 that is zero or subnormal are the least normal numbers."""
    if x.dtype != np.float32:
        return np.nextafter(x, y)
    a, b = flushed(x), flushed(y)
    least = np.copysign(np.finfo(np.float32).tiny, b)
    return np.where((a == 0) & (b != 0) & ~np.isnan(b), least, np.nextafter(a, b))


def _with(name: str, of_subnormals: float) -> Function:
    """A function with a value of its own for subnormal float32."""
    plain = _FUNCTIONS[name]
    return lambda x: np.where(_is_subnormal(x), of_subnormals, flushed(plain(flushed(x)))).astype(x.dtype)


def _divided(name: str) -> Function:
    """A remainder, which is zero instead of subnormal unless the quotient is above 2^23 and was rounded toward zero."""
    plain = _FUNCTIONS[name]

    def apply(x: Array, y: Array) -> Array:
        x, y = flushed(x), flushed(y)
        result = plain(x, y)
        is_kept = (np.abs(x) > np.abs(y) * x.dtype.type(2**23)) & (np.signbit(result) == np.signbit(x))
        return np.where(is_kept, result, flushed(result))

    return apply


def _where_positive(name: str) -> Function:
    """A function that takes positive subnormal float32 as zeros, and negative ones as they are."""
    plain = _FUNCTIONS[name]
    return lambda x: flushed(plain(np.where(x > 0, flushed(x), x)))


def _power(x: Array, y: Array) -> Array:
    """The digits of a subnormal base are lost, its exponent is taken for that of 2^-127."""
    base = np.where(_is_subnormal(x), np.copysign(x.dtype.type(2.0**-127), x), x)
    return flushed(_FUNCTIONS["pow"](base, y))


# Triton links libdevice with -nvvm-reflect-ftz: most functions of float32 take and give subnormal numbers as zeros.
# Which do not is what the PTX shows that Triton 3.6.0 makes of each.
_WITH_SUBNORMALS = ("copysign", "erfinv", "exp", "exp10", "fdim", "log", "log10", "log2", "nearbyint", "rint", "trunc")
_GIVING_SUBNORMALS = ("j1", "rhypot", "rnorm3d", "rnorm4d")
_OWN_WAY: dict[str, Function] = {
    "nextafter": _nextafter,
    "pow": _power,
    "normcdfinv": lambda x: flushed(_FUNCTIONS["normcdfinv"](flushed(x * 2) / 2)),  # It doubles its operand.
    **{name: _where_positive(name) for name in ("tgamma", "y0", "y1")},
    "fast_powf": lambda x, y: exp2_flushed(np.log2(flushed(x)) * y),
    **{name: _divided(name) for name in ("fmod", "remainder")},
    **{name: _with(name, math.nan) for name in ("cbrt", "rcbrt")},
    **{name: _with(name, 0.0) for name in ("expm1", "log1p", "sinpi")},
    "logb": _with("logb", -150.0),
}


def _linked(name: str, function: Function) -> Function:
    """A function as Triton links it."""
    if name in _OWN_WAY:
        return _OWN_WAY[name]
    if name in _WITH_SUBNORMALS:
        return function
    gives_subnormals = name in _GIVING_SUBNORMALS

    def flushing(*operands: Array) -> Array:
        result = function(*(flushed(operand) for operand in operands))
        return result if gives_subnormals else flushed(result)

    return flushing


FLOAT_FUNCTIONS: dict[str, Function] = {name: _linked(name, function) for name, function in _FUNCTIONS.items()}
