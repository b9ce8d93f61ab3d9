"""Matrices of special forms, sums, random orders and tolerances, of programs that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping import hlo_names as names
from bragg.grouping.hlo_program import HloPlace, HloState
from bragg.record.hooks.jax.hlo.text import operations_in
from tests.support.jax_states import states

jax = pytest.importorskip("jax")
jnp = jax.numpy
SQUARE, ROWS, TOKENS = (128, 128), (512, 128), (16, 64, 128)


def tridiagonal(d: Any, b: Any) -> Any:
    return jnp.linalg.solve(jnp.diag(d[0] + 4) + jnp.diag(d[1, 1:], -1) + jnp.diag(d[2, :-1], 1), b)


def shifted(d: Any, b: Any) -> Any:
    return jnp.linalg.solve(jnp.diag(d[0] + 4) + jnp.diag(d[1, :-2], 2), b)


def written(d: Any, b: Any) -> Any:
    at = jnp.arange(127)
    a = jnp.zeros((128, 128)).at[at, at + 1].set(d[0, 1:]).at[at, at].set(d[1, 1:])
    return jnp.linalg.solve(a, b)


def beside_dense(d: Any, b: Any) -> Any:
    return jnp.linalg.solve(jnp.diag(d[0]) + d, b)


def lower(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(jnp.tril(a), b)


def factor(a: Any, b: Any) -> Any:
    return jax.scipy.linalg.solve_triangular(jnp.tril(a), b)


def covariance(x: Any, b: Any) -> Any:
    a = x.T @ x / 512 + 1e-3 * jnp.eye(128)
    return jnp.linalg.solve(a, b)


def of_factor(x: Any, b: Any) -> Any:
    a = x.T @ x / 512 + 1e-3 * jnp.eye(128)
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b)


def squared(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a @ a, b)


def gram(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a @ a.T, b)


@pytest.mark.parametrize(
    ("function", "rows", "state", "line"),
    [
        (tridiagonal, SQUARE, names.BANDED, 1),
        (shifted, SQUARE, names.BANDED, 1),
        (written, SQUARE, names.BANDED, 3),
        (beside_dense, SQUARE, "", 0),
        (lower, SQUARE, names.TRIANGULAR, 1),
        (factor, SQUARE, "", 0),
        (covariance, ROWS, names.SYMMETRIC, 2),
        (of_factor, ROWS, "", 0),
        (squared, SQUARE, "", 0),
        (gram, SQUARE, names.SYMMETRIC, 1),
    ],
)
def test_factorizations_are_told_of_matrices_whose_form_allows_for_less(
    function: Callable[..., Any], rows: tuple[int, ...], state: str, line: int
) -> None:
    assert states(function, rows, SQUARE) == ({(state, line)} if state else set())


def pooled_pixels(x: Any, w: Any) -> Any:
    image = x.reshape(16, 8, 8, 128)
    layout = ("NHWC", "HWIO", "NHWC")
    y = jax.lax.conv_general_dilated(image, w[None, None], (1, 1), "SAME", dimension_numbers=layout)
    return y.mean((1, 2))


def used_twice(x: Any, w: Any) -> Any:
    y = x @ w
    return y.mean(1) + y.max(1)


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (lambda x, w: (x @ w).mean(1), {0}),
        (lambda x, w: (2.0 * (x @ w)).sum((0, 1)), {0}),
        (lambda x, w: (x[:, :4] @ w).sum(1), set()),  # four rows
        (lambda x, w: (x @ w).sum(2), {0}),
        (lambda x, w: jnp.einsum("btd,bsd->bts", x, x).sum(1), {0}),
        (lambda x, w: jnp.einsum("btd,bsd->bts", x, x).sum(0), set()),  # of products of pairs
        (lambda x, w: jnp.tanh(x @ w).mean(1), set()),
        (used_twice, set()),
        (pooled_pixels, {3}),
    ],
)
def test_products_are_told_of_which_sums_alone_are_used(function: Callable[..., Any], lines: set[int]) -> None:
    assert states(function, TOKENS, SQUARE) == {(names.SUMMED_ROWS, line) for line in lines}


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (lambda x, w, i: jnp.einsum("nd,nde->ne", x, w.reshape(8, 16, 128)[i]), True),
        (lambda x, w, i: jnp.einsum("nd,nde->ne", x[:8], w.reshape(8, 16, 128)[i[:8]]), False),
        (lambda x, w, i: jnp.einsum("nd,nd->n", x, w[:16, :16][i]), False),
        (lambda x, w, i: jnp.einsum("nd,nkd->nk", jnp.tile(x, 128), w.reshape(8, 2048)[i.reshape(512, 1)]), False),
        (
            lambda x, w, i: jnp.einsum("nd,nkd->nk", x, w.reshape(1024, 16)[(7 * i)[:, None] % 9 + jnp.arange(64)]),
            False,
        ),
    ],
)
def test_matrices_are_told_that_are_copied_for_each_row(function: Callable[..., Any], is_told: bool) -> None:
    found = {name for name, _ in states(function, (512, 16), SQUARE, (512,))}
    assert (names.LOOKED_UP_MATRICES in found) is is_told


def batch(key: Any, x: Any) -> Any:
    order = jax.random.permutation(jax.random.key(key[0]), 4096)
    return x[order[:64]]


def choice(key: Any, x: Any) -> Any:
    return jax.random.choice(jax.random.key(key[0]), 4096, (64,), replace=False)


def epoch(key: Any, x: Any) -> Any:
    return x[jax.random.permutation(jax.random.key(key[0]), 4096)]


def kept(key: Any, x: Any) -> Any:
    order = jax.random.permutation(jax.random.key(key[0]), 4096)
    return order, x[order[:64]]


@pytest.mark.parametrize(("function", "is_told"), [(batch, True), (choice, True), (epoch, False), (kept, False)])
def test_random_orders_are_told_of_which_few_rows_are_taken(function: Callable[..., Any], is_told: bool) -> None:
    found = states(function, (1,), (4096, 8))
    assert found == ({(names.PART_OF_SHUFFLE, 1)} if is_told else set())


def test_random_orders_of_a_library_on_a_gpu_are_told() -> None:
    shuffle = 'metadata={op_name="jit(f)/_shuffle/sort" source_file="sea.py" source_line=5}'
    rows = [
        '  %k = u32[8192]{0} parameter(0), metadata={op_name="k"}',
        '  %x = s32[8192]{0} parameter(1), metadata={op_name="x"}',
        "  %at = s32[] parameter(2)",
        "  %sorted = (u32[8192]{0}, s32[8192]{0}, u8[999]{0}) custom-call(%k, %x), "
        f'custom_call_target="xla.gpu.ext.cub_sort_pairs", {shuffle}',
        f"  %order = s32[8192]{{0}} get-tuple-element(%sorted), index=1, {shuffle}",
        "  ROOT %part = s32[64]{0} dynamic-slice(%order, %at), dynamic_slice_sizes={64}",
    ]
    text = "\n".join(("HloModule jit_f", "", "ENTRY %main (k: u32[8192]) -> s32[64] {", *rows, "}", ""))
    told = HloState(names.PART_OF_SHUFFLE, HloPlace("sea.py", 5))
    assert operations_in(text, lambda _: False)["sorted"].state == told
    whole = text.replace("s32[64]{0} dynamic-slice", "s32[8192]{0} dynamic-slice")
    assert operations_in(whole, lambda _: False)["sorted"].state.name == ""


@pytest.mark.parametrize(
    ("tolerance", "limit", "type_", "is_told"),
    [
        (1e-10, 100, "float32", True),
        (1e-5, 100, "float32", False),
        (1e-10, 4, "float32", False),
    ],
)
def test_tolerances_below_the_precision_of_a_loops_numbers_are_told(
    tolerance: float, limit: int, type_: str, is_told: bool
) -> None:
    def root(x: Any) -> Any:
        def is_moving(state: Any) -> Any:
            return (state[1] > tolerance) & (state[2] < limit)

        def turn(state: Any) -> Any:
            y = state[0] - 0.5 * (jnp.sin(state[0]) - x)
            return y, jnp.abs(y - state[0]).max(), state[2] + 1

        return jax.lax.while_loop(is_moving, turn, (x + 0.5, jnp.asarray(jnp.inf, x.dtype), 0))[0] + 1.0

    assert states(root, ROWS, type_=type_) == ({(f"{names.TO_LIMIT} {limit}", 8)} if is_told else set())


def test_values_are_told_that_an_array_of_64_bits_promotes() -> None:
    jax.config.update("jax_enable_x64", True)
    try:
        taps = jnp.asarray(jnp.linspace(0.0, 1.0, 128), "float64")

        def filtered(x: Any, given: Any) -> Any:
            x = x * 2.0
            y = x * given[0]
            return (jnp.tanh(y) @ y.T).astype("float32")

        given = [jnp.zeros(ROWS, "float32"), jnp.asarray(taps[None], "float64")]
        line = filtered.__code__.co_firstlineno + 2
        text = jax.jit(filtered).lower(*given).compile().as_text()
        found = {each.state for each in operations_in(text, lambda file: file != __file__).values()}
        assert HloState(names.PROMOTED_DOUBLE, HloPlace(__file__, line)) in found
        narrow = jax.jit(filtered).lower(given[0], given[1].astype("float32")).compile().as_text()
        found = {each.state for each in operations_in(narrow, lambda file: file != __file__).values()}
        assert {each.name for each in found if not names.arguments_of(each.name)} <= {"", names.CONSTANT}
    finally:
        jax.config.update("jax_enable_x64", False)


GPU_POOL = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64,32,32,512], w: f32[1024,1,1,512]) -> f32[64,1024] {
  %x = f32[64,32,32,512]{3,2,1,0} parameter(0)
  %w = f32[1024,1,1,512]{3,2,1,0} parameter(1)
  %conv = (f32[64,32,32,1024]{3,2,1,0}, u8[400]{0}) custom-call(%x, %w), window={size=1x1}, dim_labels=b01f_o01i->b01f
  %y = f32[64,32,32,1024]{3,2,1,0} get-tuple-element(%conv), index=0
  %pixels = f32[64,1024,1024]{2,1,0} bitcast(%y)
  %zero = f32[] constant(0)
  ROOT %sum = f32[64,1024]{1,0} reduce(%pixels, %zero), dimensions={1}, to_apply=%add
}
"""

GPU_EXPERTS = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (w: f32[8,512,512], x: f32[4096,512], ids: s32[4096,1]) -> f32[4096,512] {
  %w = f32[8,512,512]{2,1,0} parameter(0)
  %x = f32[4096,512]{1,0} parameter(1)
  %ids = s32[4096,1]{1,0} parameter(2)
  %rows = f32[4096,512,1,512]{3,2,1,0} broadcast(%x), dimensions={0,3}
  %gather = f32[4096,1,512,512]{2,1,3,0} gather(%w, %ids), start_index_map={0}, slice_sizes={1,512,512}
  %own = f32[4096,512,1,512]{3,2,1,0} bitcast(%gather)
  %product = f32[4096,512,1,512]{3,2,1,0} multiply(%rows, %own)
  %terms = f32[4096,512,512]{2,1,0} bitcast(%product)
  %zero = f32[] constant(0)
  ROOT %sum = f32[4096,512]{1,0} reduce(%terms, %zero), dimensions={2}, to_apply=%add
}
"""


@pytest.mark.parametrize(
    ("text", "op", "state", "other"),
    [
        (GPU_POOL, "conv", names.SUMMED_ROWS, ("window={size=1x1}", "window={size=3x3}")),
        (GPU_EXPERTS, "sum", names.LOOKED_UP_MATRICES, ("f32[8,512,512]", "f32[4096,512,512]")),
    ],
)
def test_what_xla_makes_of_them_for_a_gpu_is_told(text: str, op: str, state: str, other: tuple[str, str]) -> None:
    found = operations_in(f"HloModule jit_f\n{text}", lambda _: False)
    assert found[op].state.name == state
    found = operations_in(f"HloModule jit_f\n{text.replace(*other)}", lambda _: False)
    assert found[op].state.name == ""
