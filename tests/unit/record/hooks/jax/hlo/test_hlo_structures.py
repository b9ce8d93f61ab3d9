"""Bands, low ranks, wide windows, weighted distances and scaled products, of programs that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping import hlo_names as names
from bragg.record.hooks.jax.hlo.text import operations_in
from tests.support.jax_states import states

jax = pytest.importorskip("jax")
jnp = jax.numpy
GRID, FEW_COLUMNS, SIDES = (512, 512), (512, 8), (512, 64)


def second_differences(n: int) -> Any:
    return jnp.eye(n, k=1) - 2 * jnp.eye(n) + jnp.eye(n, k=-1)


def diffused(u: Any) -> Any:
    return u + 0.1 * (second_differences(512) @ u)


def diffused_in_turns(u: Any) -> Any:
    differences = second_differences(512)
    return jax.lax.fori_loop(0, 100, lambda _, u: u + 0.1 * (u @ differences), u)


def diffused_by_slices(u: Any) -> Any:
    return u + 0.1 * (jnp.roll(u, 1, 0) - 2 * u + jnp.roll(u, -1, 0))


def short_rows(u: Any) -> Any:
    return second_differences(128) @ u[:128]


def mixed(u: Any) -> Any:
    return (second_differences(512) + 0.1 * u) @ u


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (diffused, {1}),
        (diffused_in_turns, {2}),
        (diffused_by_slices, set()),
        (short_rows, set()),
        (mixed, set()),
    ],
)
def test_products_with_banded_matrices_of_long_rows_are_told(function: Callable[..., Any], lines: set[int]) -> None:
    found = states(function, GRID)
    assert {line for name, line in found if name == names.BANDED_FACTOR} == lines
    assert {name for name, _ in found} <= {names.BANDED_FACTOR, f"{names.COPIED} u"}


def triangles(a: Any) -> Any:
    adjacent = (a > 0).astype(jnp.int32)
    return ((adjacent @ adjacent) * adjacent).sum()


def triangles_of_floats(a: Any) -> Any:
    adjacent = (a > 0).astype(jnp.float32)
    return ((adjacent @ adjacent) * adjacent).sum()


def few_counts(a: Any) -> Any:
    return (a > 0).astype(jnp.int32)[:4] @ (a > 0).astype(jnp.int32)


def products_of_bytes(a: Any) -> Any:
    return jax.lax.dot(a.astype(jnp.int8), a.astype(jnp.int8), preferred_element_type=jnp.int32)


@pytest.mark.parametrize(
    ("function", "lines"),
    [(triangles, {2}), (triangles_of_floats, set()), (few_counts, set()), (products_of_bytes, set())],
)
def test_products_of_wide_integers_are_told(function: Callable[..., Any], lines: set[int]) -> None:
    assert states(function, GRID) == {(names.INTEGERS, line) for line in lines}


def solved(w: Any, d: Any, b: Any) -> Any:
    return jnp.linalg.solve(w @ w.T + jnp.diag(d.astype("float32")), b)


def likelihood(w: Any, d: Any, b: Any) -> Any:
    factor = jnp.linalg.cholesky(w @ (w[:8] @ w.T) + 0.1 * jnp.eye(512))
    return jax.scipy.linalg.solve_triangular(factor, b, lower=True), jnp.log(jnp.diag(factor)).sum()


def of_many_columns(w: Any, d: Any, b: Any) -> Any:
    return jnp.linalg.cholesky(b @ b.T + w @ w.T + jax.random.normal(jax.random.key(0), GRID))


def kernel(w: Any, d: Any, b: Any) -> Any:
    return jnp.linalg.cholesky(jnp.exp(w @ w.T) + jnp.eye(512))


def small(w: Any, d: Any, b: Any) -> Any:
    inner = jnp.eye(8) + w.T @ w
    return b - w @ jnp.linalg.solve(inner, w.T @ b)


@pytest.mark.parametrize(
    ("function", "lines"), [(solved, {1}), (likelihood, {1}), (of_many_columns, set()), (kernel, set()), (small, set())]
)
def test_factorizations_are_told_of_a_diagonal_and_few_columns(function: Callable[..., Any], lines: set[int]) -> None:
    found = states(function, FEW_COLUMNS, (512,), SIDES)
    assert found == {(names.LOW_RANK, line) for line in lines}


def windows(kind: Any, start: float, *sides: int) -> Callable[..., Any]:
    return lambda x: jax.lax.reduce_window(x, start, kind, sides, (1,) * len(sides), "SAME")


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (windows(jax.lax.add, 0.0, 17, 17), True),
        (windows(jax.lax.max, -jnp.inf, 17, 17), True),
        (windows(jax.lax.add, 0.0, 1, 200), True),
        (windows(jax.lax.add, 0.0, 1, 17), False),
        (windows(jax.lax.add, 0.0, 3, 3), False),
        (lambda x: jnp.cumsum(x, 1), False),
        (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (16, 16), (16, 16), "SAME"), False),
    ],
)
def test_wide_windows_that_begin_at_each_element_are_told(function: Callable[..., Any], is_told: bool) -> None:
    assert {name for name, _ in states(function, GRID)} == ({names.WIDE_FILTER} if is_told else set())


def of_pair_weights(x: Any, m: Any, s: Any) -> Any:
    pairs = x[:, None] - m
    return (jnp.tanh(pairs) * pairs**2).sum(-1)


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (lambda x, m, s: (((x[:, None] - m) / s) ** 2).sum(-1), True),
        (lambda x, m, s: ((x[:, None] - m) ** 2 / s).sum(-1), True),
        (lambda x, m, s: jax.scipy.stats.norm.logpdf(x[:, None], m, s).sum(-1), True),
        (lambda x, m, s: (s / (1 + (x[:, None] - m) ** 2)).sum(-1), False),
        (of_pair_weights, False),
    ],
)
def test_squares_of_weighted_differences_of_all_pairs_are_told(function: Callable[..., Any], is_told: bool) -> None:
    found = {name for name, _ in states(function, (4096, 16), (64, 16), (64, 16))}
    assert found == ({names.PAIRWISE} if is_told else set())


def divergences(p: Any, q: Any) -> Any:
    return (p[:, None] * (jnp.log(p)[:, None] - jnp.log(q))).sum(-1)


def of_short_rows(p: Any, q: Any) -> Any:
    p = jnp.repeat(p, 16, 0)[:, :4]
    return (p[:, None] * (jnp.log(p)[:, None] - jnp.log(q[:, :4]))).sum(-1)


def distances_in_a_plane(p: Any, q: Any) -> Any:
    return ((jnp.repeat(p, 16, 0)[:, None, :2] - q[:, :2]) ** 2).sum(-1)


@pytest.mark.parametrize(
    ("function", "lines"), [(divergences, {1}), (of_short_rows, set()), (distances_in_a_plane, set())]
)
def test_products_with_differences_of_what_two_rows_hold_are_told(
    function: Callable[..., Any], lines: set[int]
) -> None:
    assert states(function, SIDES, SIDES) == {(names.SUMMED_PRODUCT, line) for line in lines}


GPU_ATTENTION = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%sums (s: f32[8,2048,2048]) -> f32[8,2048] {
  %s = f32[8,2048,2048]{2,1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %sum = f32[8,2048]{1,0} reduce(%s, %zero), dimensions={2}, to_apply=%add
}

%scaled (s.1: f32[8,2048,2048], z: f32[8,2048]) -> f32[8,2048,2048] {
  %s.1 = f32[8,2048,2048]{2,1,0} parameter(0)
  %z = f32[8,2048]{1,0} parameter(1)
  %each = f32[8,2048,2048]{2,1,0} broadcast(%z), dimensions={0,1}
  ROOT %shares = f32[8,2048,2048]{2,1,0} divide(%s.1, %each)
}

ENTRY %main (q: f32[8,2048,64], k: f32[8,2048,64], v: f32[8,2048,64]) -> f32[8,2048,64] {
  %q = f32[8,2048,64]{2,1,0} parameter(0)
  %k = f32[8,2048,64]{2,1,0} parameter(1)
  %v = f32[8,2048,64]{2,1,0} parameter(2)
  %scores = f32[8,2048,2048]{2,1,0} dot(%q, %k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
  %row_sums = f32[8,2048]{1,0} fusion(%scores), kind=kInput, calls=%sums
  %weights = f32[8,2048,2048]{2,1,0} fusion(%scores, %row_sums), kind=kLoop, calls=%scaled
  ROOT %mixed = f32[8,2048,64]{2,1,0} dot(%weights, %v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("others", "is_told"),
    [
        ([], True),
        ([("64]", "2048]")], False),  # no order is cheaper for rows that are as long as they are many
        ([("broadcast(%z), dimensions={0,1}", "broadcast(%z), dimensions={1,2}")], False),  # a weight for each pair
        ([("divide(%s.1, %each)", "multiply(%each, %s.1)")], True),
        (
            [
                ("  ROOT %shares", "  %wide = f32[8,2048,2048]{2,1,0} convert(%each)\n  ROOT %shares"),
                ("%s.1, %each", "%s.1, %wide"),
            ],
            True,
        ),
        ([("divide(%s.1, %each)", "divide(%each, %s.1)")], False),
        ([("divide(", "power(")], False),
        ([("ROOT %mixed", "%mixed"), ("%weights = ", "ROOT %weights = ")], False),  # which is needed itself
    ],
)
def test_products_of_a_costly_order_are_told_whose_rows_are_scaled_between(
    others: list[tuple[str, str]], is_told: bool
) -> None:
    text = f"HloModule jit_f\n{GPU_ATTENTION}"
    for old, new in others:
        text = text.replace(old, new)
    found = operations_in(text, lambda _: False)
    assert found["scores"].state.name == (names.COSTLY_ORDER if is_told else "")
    assert found["mixed"].state.name == ""
