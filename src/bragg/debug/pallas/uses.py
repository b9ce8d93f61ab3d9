"""What becomes of the values of a jaxpr."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def used(jaxpr: Any) -> frozenset[Any]:
    """Variables that something looks at."""
    looked = [one for equation in jaxpr.eqns for one in equation.invars] + list(jaxpr.outvars)
    return frozenset(one for one in looked if not hasattr(one, "val"))


@lru_cache(maxsize=256)
def only_chosen(jaxpr: Any) -> frozenset[Any]:
    """Variables that nothing looks at but choices by a condition, of which they are a side."""
    looked = {one for one in jaxpr.outvars if not hasattr(one, "val")}
    chosen: set[Any] = set()
    for equation in reversed(jaxpr.eqns):
        for place, one in enumerate(equation.invars):
            if not hasattr(one, "val"):
                (chosen if _is_side(equation, place, chosen - looked) else looked).add(one)
    return frozenset(chosen - looked)


def _is_side(equation: Any, place: int, chosen: set[Any]) -> bool:
    """An operand of an equation is a side of a choice, or becomes one."""
    name = equation.primitive.name
    if name == "select_n":
        return place > 0
    if name in ("jit", "pjit"):
        inner = equation.params["jaxpr"].jaxpr
        return inner.invars[place] in only_chosen(inner)
    return name == "convert_element_type" and equation.outvars[0] in chosen
