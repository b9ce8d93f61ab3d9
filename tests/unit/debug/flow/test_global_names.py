# ruff: noqa: N803, N806 - names that hide constants are those of the constants
"""Names from outside of a kernel: what Triton refuses is told, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl

SCALE = 2.0
CONSTANT = tl.constexpr(3.0)


@triton.jit
def scaled(x):
    tl.store(x, tl.load(x) * SCALE)


@triton.jit
def hidden_by_local_names(x, CONSTANT):
    SCALE = CONSTANT
    squares = tuple([abs * abs for abs in (1, 2)])
    tl.store(x, tl.load(x) * SCALE + squares[1])


@triton.jit
def default(x, factor: tl.constexpr = SCALE):
    tl.store(x, tl.load(x) * factor)


def messages(kernel: Any, *arguments: Any) -> list[str]:
    with bragg.debug.check() as report:
        kernel[(1,)](np.ones(4, "f4"), *arguments)
    return [finding.message for finding in report]


def test_a_variable_is_told_with_the_way_to_define_it() -> None:
    assert messages(scaled) == ["Triton does not compile the global variable SCALE: it is not a tl.constexpr"]


def test_variables_are_taken_where_triton_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton.knobs.compilation.allow_non_constexpr_globals", True)

    @triton.jit
    def fresh(x):
        tl.store(x, tl.load(x) * SCALE * CONSTANT)

    assert messages(fresh) == []


def test_defaults_of_parameters_may_be_variables() -> None:
    assert messages(default) == []


def test_variables_of_an_enclosing_function_are_refused_too() -> None:
    factor = 2.0

    @triton.jit
    def closed(x):
        tl.store(x, tl.load(x) * factor)

    assert messages(closed) == ["Triton does not compile the global variable factor: it is not a tl.constexpr"]


def test_local_names_hide_others() -> None:
    assert not [text for text in messages(hidden_by_local_names, 2.0) if "SCALE" in text or "abs" in text]
