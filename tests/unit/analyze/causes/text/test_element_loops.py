"""Loops over single elements of arrays, by the text alone."""

from __future__ import annotations

import ast

import pytest

from bragg.analyze.causes.text.element_loops import computes_elements, stores_one_element
from bragg.analyze.causes.text.program_text import FileText, Loop

LOOPS = """\
def f(a, b, x):
    n, m = a.shape
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            {body}
    return c
f(np.load("a"), np.random.rand(30, 40), np.load("x"))
"""


def loop_in(text: str) -> tuple[FileText, Loop]:
    """The innermost loop of a file."""
    file = FileText(ast.parse(text))
    return file, [each for each in ast.walk(file.tree) if isinstance(each, (ast.For, ast.While))][-1]


@pytest.mark.parametrize(
    "body",
    [
        "c[i, j] = a[i - 1, j] + a[i, j + 1]",
        "a[i, j] = np.maximum(a[i, j], 0.0)",  # two numbers of its shape
        "b[i, j] += x[i][j]",  # dimensions by the call
        "t = 2 * x[i, j]; c[i, j] = t * t",
        "c[i, j] = max(x[i, j], 0.0) if x[i, j] != 1 else 0",
    ],
)
def test_a_loop_stores_one_element_of_an_array_of_known_dimensions(body: str) -> None:
    file, loop = loop_in(LOOPS.format(body=body))
    assert computes_elements(file, loop)
    assert stores_one_element(file, loop)


@pytest.mark.parametrize(
    "body",
    [
        "c[i] = a[i] + 1",  # a row
        "x[i, j] = x[i, j] + 1",  # dimensions are not known
        "c[x, j] = c[x, j] + 1",  # x may be many indices
        "t = x[i, j] * x[i, j]",
        "t = np.sum(x[i]); c[i, j] = np.sqrt(np.sum(t))",
    ],
)
def test_a_loop_may_store_many_elements(body: str) -> None:
    assert not stores_one_element(*loop_in(LOOPS.format(body=body)))


@pytest.mark.parametrize(
    "body",
    [
        "c[i, j] = x[i] @ x[j]",
        "c[i, j] = np.sqrt(np.sum((x[i] - x[j]) ** 2))",
        "c[i, j] = max(x[i])",
        "c[i, j] = x[i, :][j]",
        "c[i, j] = i in x",
        "c[i, j] = solve(x[i, j])",
        "c[i, j] = [k for k in x[i]][0]",
        "t = i * j",
    ],
)
def test_turns_that_may_work_on_many_elements(body: str) -> None:
    assert not computes_elements(*loop_in(LOOPS.format(body=body)))


def test_a_function_of_the_program_is_not_that_of_single_elements() -> None:
    text = LOOPS.format(body="c[i, j] = sqrt(a[i, j])")
    assert computes_elements(*loop_in(text))
    assert not computes_elements(*loop_in("def sqrt(x): return np.linalg.svd(x)\n" + text))


def test_dimensions_are_those_of_every_value_that_an_array_has() -> None:
    text = """\
def smooth(a):
    out = np.empty_like(a)
    for i in range(1, len(a) - 1):
        out[i] = a[i - 1] + a[i + 1]
    return out
a = np.random.rand({shape})
for _ in range(9): a = smooth(a)
"""
    file = FileText(ast.parse(text.format(shape="1000")))
    loop = file.functions["smooth"][0].body[1]
    assert isinstance(loop, ast.For)
    assert stores_one_element(file, loop)
    file = FileText(ast.parse(text.format(shape="1000, 1000")))
    loop = file.functions["smooth"][0].body[1]
    assert isinstance(loop, ast.For)
    assert not stores_one_element(file, loop)


def test_a_sum_is_one_element_where_it_is_stored() -> None:
    text = """\
def matmul(a, b, n):
    c = np.zeros(n * n)
    for i in range(n):
        s = 0.0
        for k in range(n):
            s += a[i, k] * b[k, i]
        c[i * n] = {stored}
"""
    assert stores_one_element(*loop_in(text.format(stored="s / 2")))
    assert not stores_one_element(*loop_in(text.format(stored="s.sum()")))
