"""Correct kernels; importing this registers all of them in `CORRECT`."""

from tests.kernels.correct import (
    attention,
    matmuls,
    movement,
    ordering,
    partitions,
    pointers,
    pointwise,
    puzzles,
    quantisation,
    rows,
    serving,
    sharing,
    synchronising,
    waiting,
)
from tests.kernels.correct.table import CORRECT

__all__ = [
    "CORRECT",
    "attention",
    "matmuls",
    "movement",
    "ordering",
    "partitions",
    "pointers",
    "pointwise",
    "puzzles",
    "quantisation",
    "rows",
    "serving",
    "sharing",
    "synchronising",
    "waiting",
]
