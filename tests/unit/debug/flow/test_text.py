"""Functions of one text share what is made of it, and keep what their names mean."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.flow import text
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.flow.jitted import python_function
from bragg.debug.flow.program import Program

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402


def kernel_that_adds(amount: Any) -> Any:
    @triton.jit
    def kernel(x):
        tl.store(x, tl.load(x) + amount)

    return kernel


def test_a_text_is_rewritten_once_for_all_its_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten: list[str] = []
    rewrite: Callable[..., ast.FunctionDef] = text.rewrite
    monkeypatch.setattr(text, "rewrite", lambda nodes, *rest: rewritten.append(nodes[0].name) or rewrite(nodes, *rest))
    text.Text.of.cache_clear()
    x = np.zeros(1, np.float32)
    for amount in (1, 2, 3):
        bragg.debug.interpret(kernel_that_adds(tl.constexpr(amount)))[(1,)](x)
    assert x.tolist() == [6]
    assert rewritten == ["kernel"]


def test_a_text_has_the_line_numbers_of_its_file() -> None:
    tree = text.Text("kernels.py", 40, '@jit\ndef k(x):\n    """Doubles\n    x."""\n    return 2 * x\n').tree
    assert (tree.lineno, tree.end_lineno, tree.body[1].lineno, tree.body[1].col_offset) == (41, 44, 44, 4)


def test_names_are_looked_at_again_only_where_triton_refuses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    rewrite: Callable[..., ast.FunctionDef] = text.rewrite
    monkeypatch.setattr(text, "rewrite", lambda nodes, file, names: given.append(names) or rewrite(nodes, file, names))
    for amount in (tl.constexpr(1), 1):
        one = text.Text("kernels.py", 1, "def k(x):\n    return x + amount\n")
        one.code({"amount": amount})
    assert given == [None, {"amount": 1}]


def test_what_triton_refuses_of_one_function_it_may_take_of_another() -> None:
    x = np.zeros(1, np.float32)
    for amount, has_finding in ((1, True), (tl.constexpr(1), False), (2, True)):
        with bragg.debug.check() as report:
            kernel_that_adds(amount)[(1,)](x)
        assert ["the global variable amount" in finding.message for finding in report] == [True] * has_finding
    assert x.tolist() == [4]


@triton.jit
def itself(x):
    return x


@triton.jit
def loaded(x):
    return tl.load(x)


def kernel_that_calls(place: Any) -> Any:
    @triton.jit
    def kernel(x):
        tl.store(x + place(x), 1)

    return kernel


def test_functions_of_one_text_that_call_others_depend_on_data_each_for_itself() -> None:
    first, second = (Program.of(python_function(kernel_that_calls(one))) for one in (itself, loaded))
    assert first.text is second.text
    assert dependence_of(first) is None
    found = dependence_of(second)
    assert found is not None
    assert found.what == "the address or mask depends on data"
