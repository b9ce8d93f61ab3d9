"""Arrays that functions read, in programs that JAX lowers for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bragg.record.hooks.jax.constants import captured_constants

jax = pytest.importorskip("jax")
SIDE = 1024
TABLE, SMALL = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE), np.ones((SIDE, 8), np.float32)


class Terrain:
    def __init__(self) -> None:
        self.table = jax.device_put(TABLE)

    def features(self, x: Any) -> Any:
        y = x + SMALL.sum()
        return jax.numpy.roll(self.table, 1) * y


def read(x: Any) -> Any:
    return x + TABLE


def of_numbers(x: Any) -> Any:
    return x + np.ones((SIDE, SIDE), np.float32)  # one number, repeated


@pytest.mark.parametrize(
    ("function", "line"),
    [(read, 1), (Terrain().features, 2), (of_numbers, None), (lambda x: x @ SMALL, None), (lambda x: x + x, None)],
)
def test_large_arrays_are_told_where_they_are_read(function: Callable[..., Any], line: int | None) -> None:
    operation = jax.jit(function).lower(TABLE).compiler_ir().operation
    text = operation.get_asm(large_elements_limit=16)
    told = captured_constants(operation, text, 16, lambda file: file != __file__)
    first = function.__code__.co_firstlineno
    assert told == ("" if line is None else f"{TABLE.nbytes} {__file__}:{first + line}")


@pytest.mark.parametrize(("type_", "n_bytes"), [("i1", 1), ("bf16", 2), ("complex<f32>", 8), ("ui8", 1)])
def test_bytes_are_those_of_the_elements_type(type_: str, n_bytes: int) -> None:
    text = f"    %cst = stablehlo.constant dense_resource<__elided__> : tensor<2048x4096x{type_}>\n"

    class Operation:
        def get_asm(self, **_: object) -> str:
            return text

    assert captured_constants(Operation(), text, 16, str) == f"{n_bytes << 23} "
