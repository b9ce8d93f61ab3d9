"""Kernels with a planted bug each; importing this registers all of them in `PLANTED`."""

from tests.kernels.planted import (
    barriers,
    bounds,
    compilation,
    dependence,
    leaks,
    lifetimes,
    partitions,
    performance,
    races,
    sharing,
    values,
    waits,
)
from tests.kernels.planted.table import PLANTED

__all__ = [
    "PLANTED",
    "barriers",
    "bounds",
    "compilation",
    "dependence",
    "leaks",
    "lifetimes",
    "partitions",
    "performance",
    "races",
    "sharing",
    "values",
    "waits",
]
