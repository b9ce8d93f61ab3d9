"""What each of Python's operators does with values of kernels, by the names of Python's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.numbers.arithmetic import add, bitwise, floordiv, invert, mod, mul, neg, sub, truediv
from bragg.debug.numbers.comparisons import COMPARISONS, comparison
from bragg.debug.numbers.shapes import getitem

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "truediv": truediv,
    "floordiv": floordiv,
    "mod": mod,
    "and": bitwise("&", np.bitwise_and),
    "or": bitwise("|", np.bitwise_or),
    "xor": bitwise("^", np.bitwise_xor),
    "lshift": bitwise("<<", np.left_shift),
    "rshift": bitwise(">>", np.right_shift),
    "neg": neg,
    "pos": lambda value: value,
    "invert": invert,
    "getitem": getitem,
    **{name: comparison(name) for name in COMPARISONS},
}
