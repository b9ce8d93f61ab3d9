"""Factors, tables and loops that programs could do without, of programs that JAX compiles for the CPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping import hlo_names as names
from tests.support.jax_states import states

jax = pytest.importorskip("jax")
SQUARE, ROWS = (128, 128), (512, 128)


@pytest.mark.parametrize(
    ("function", "shapes", "state"),
    [
        (lambda d, x: jax.numpy.diag(d[:128].astype("float32")) @ x, [(128,), SQUARE], names.DIAGONAL),
        (lambda a, x: jax.numpy.triu(a) @ x, [SQUARE, SQUARE], ""),
        (lambda a, b, x: jax.numpy.kron(a[:8, :8], b[:16, :16]) @ x, [SQUARE, SQUARE, SQUARE], names.OUTER),
        (lambda a, b, x: (a * b) @ x, [SQUARE, SQUARE, SQUARE], ""),
        (lambda a, b: jax.numpy.trace(a @ b), [SQUARE, SQUARE], names.MOSTLY_UNUSED),
        (lambda a, b: jax.numpy.tril(a @ b).sum(), [SQUARE, SQUARE], ""),
        (lambda a, b: a.astype("complex64") @ jax.lax.complex(b, a), [SQUARE, SQUARE], names.COMPLEX_PRODUCT),
        (lambda a, b: jax.lax.complex(a, b) @ jax.lax.complex(b, a), [SQUARE, SQUARE], ""),
        (lambda a, b: (a[:, :, None] * b[None]).sum(1), [ROWS, SQUARE], names.SUMMED_PRODUCT),
        (lambda a, b: (a[:, :, None] * b[None]).max(1), [ROWS, SQUARE], ""),
        (lambda a, b: (a[:, :, None] * b[:, None]).sum(2), [ROWS, ROWS], ""),
        (lambda a, b, c: a @ b + a @ c, [SQUARE, SQUARE, SQUARE], names.SPLIT_PRODUCT),
        (lambda a, b, c: a @ b + b @ c, [SQUARE, SQUARE, SQUARE], ""),
        (
            lambda q, k: jax.numpy.einsum("hik,hjk->hij", q.reshape(8, 64, 128), jax.numpy.repeat(k[None], 8, 0)),
            [ROWS, SQUARE],
            names.REPEATED_FACTOR,
        ),
        (lambda t, i, w: t[i] @ w, [SQUARE, (4096,), SQUARE], names.LATE_PRODUCT),
        (lambda t, i, w: t[i] @ w, [ROWS, (256,), SQUARE], ""),
        (
            lambda x: x[:, jax.numpy.arange(64)[:, None] + jax.numpy.arange(65)[None, :]].sum(-1),
            [ROWS],
            names.WINDOWS,
        ),
        (
            lambda x, w: jax.numpy.stack([x[:, i : i + 48] for i in range(16)], -1) @ w,
            [(128, 64), (16, 8)],
            names.WINDOWS,
        ),
        (
            lambda x, w: jax.numpy.stack([jax.numpy.roll(x, i, 1) for i in range(16)], -1) @ w,
            [(128, 64), (16, 8)],
            names.WINDOWS,
        ),
        (lambda x, w: jax.numpy.stack([x[:, i : i + 48] for i in range(4)], -1) @ w, [(128, 64), (4, 8)], ""),
        (
            lambda x: jax.numpy.sort(jax.numpy.stack([x[:, i : i + 48] for i in range(16)], -1)),
            [(128, 64)],
            "",
        ),  # a median has no cheaper way
        (lambda x, i: x[:, i].sum(-1), [(16, 128), (8192,)], ""),
        (lambda x, i: x[:, i], [(128, 4096), (512,)], names.SCATTERED),
        (lambda x, i: jax.vmap(lambda at: x[:, at])(i), [(128, 4096), (512,)], names.SCATTERED),
        (lambda x, i: x[i], [(4096, 128), (512,)], ""),
        (lambda x, i: (x + 1.0)[:, i], [(128, 4096), (512,)], ""),  # which XLA may lay out as it likes
        (lambda x: jax.numpy.argsort(jax.numpy.argsort(x)), [(64, 1024)], names.RANKS),
        (lambda x: jax.numpy.sort(x[jax.numpy.argsort(x[:, 0])]), [(64, 1024)], ""),
    ],
)
def test_factors_and_rows_that_make_work_are_told(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], state: str
) -> None:
    assert states(function, *shapes) == ({(state, 0)} if state else set())


def test_windows_that_are_put_side_by_side_are_told_where_they_are() -> None:
    def multiplied(x: Any, w: Any) -> Any:
        parts = [x[:, i : i + 48] for i in range(16)]
        windows = jax.numpy.stack(parts, -1)
        return windows @ w

    assert states(multiplied, (128, 64), (16, 8)) == {(names.WINDOWS, 2)}


def test_long_filters_of_signals_are_told() -> None:
    def filtered(x: Any, k: Any) -> Any:
        return jax.numpy.convolve(x[0], k[0], mode="same")

    assert states(filtered, (1, 20000), (1, 500)) == {(names.WIDE_FILTER, 1)}
    assert states(filtered, (1, 20000), (1, 50)) == set()


@pytest.mark.parametrize(("side", "channels", "is_told"), [(11, 1, True), (5, 1, False), (11, 4, False)])
def test_wide_filters_of_single_channels_are_told(side: int, channels: int, is_told: bool) -> None:
    def blur(x: Any, k: Any) -> Any:
        return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME")

    found = states(blur, (2, channels, 64, 64), (1, channels, side, side))
    assert {name for name, _ in found} == ({names.WIDE_FILTER} if is_told else set())


def embedded(table: Any, ids: Any) -> Any:
    return jax.numpy.tanh(table[ids]).sum()


@pytest.mark.parametrize(("n_rows", "is_told"), [(4096, True), (256, False)])
def test_gradients_of_whole_tables_are_told_where_rows_are_looked_up(n_rows: int, is_told: bool) -> None:
    def step(table: Any, ids: Any) -> Any:
        return table - 0.1 * jax.grad(embedded)(table, ids)

    line = embedded.__code__.co_firstlineno + 1 - step.__code__.co_firstlineno
    assert states(step, (n_rows, 512), (512,)) == ({(names.DENSE_GRADIENT, line)} if is_told else set())


def mapped(xs: Any) -> Any:
    return jax.lax.map(lambda x: jax.numpy.tanh(x @ xs), xs.reshape(8, 16, 128))


def added_up(xs: Any) -> Any:
    return jax.lax.fori_loop(0, 8, lambda i, total: total + xs[i] @ xs, jax.numpy.zeros(128))


def chained(xs: Any) -> Any:
    return jax.lax.fori_loop(0, 8, lambda i, x: x @ xs, xs + 1.0)


def running(xs: Any) -> Any:
    return jax.lax.scan(lambda total, x: (total + x, total @ xs), xs[0], xs)[1]


def own_rows(xs: Any) -> Any:
    return jax.lax.fori_loop(0, 128, lambda i, x: x.at[i].set(jax.numpy.sort(x[i])), xs)


def rows_by_number(xs: Any) -> Any:
    at = (xs[0] * 100).astype(int)
    return jax.lax.fori_loop(0, 128, lambda i, x: x.at[at[i]].set(jax.numpy.sort(x[at[i]])), xs)


def rows_that_are_added(xs: Any) -> Any:
    at = (xs[0] * 100).astype(int)
    return jax.lax.fori_loop(0, 128, lambda i, total: total.at[at[i]].add(xs[i]), jax.numpy.zeros(SQUARE))


def rows_in_turn(xs: Any) -> Any:
    return jax.lax.fori_loop(0, 128, lambda i, x: x.at[i % 8].set(jax.numpy.sort(x[i % 8])), xs)


def one_row(xs: Any) -> Any:
    return jax.lax.fori_loop(0, 128, lambda i, x: x.at[0].set(jax.numpy.sort(x[0] + i)), xs)


def rows_from_the_last(xs: Any) -> Any:
    return jax.lax.fori_loop(1, 128, lambda i, x: x.at[i].set(x[i] + 0.5 * x[i - 1]), xs)


def _two_at_once(xs: Any, shift: int) -> Any:
    def turn(i: Any, both: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = both
        moved = jax.numpy.sort(x[i]) + y[i - shift]
        return x.at[i].set(moved), y.at[i].set(moved * y[i])

    return jax.lax.fori_loop(shift, 128, turn, (xs, xs + 1.0))


def two_own_rows(xs: Any) -> Any:
    return _two_at_once(xs, 0)


def the_row_before_of_another(xs: Any) -> Any:
    return _two_at_once(xs, 1)


@pytest.mark.parametrize(
    ("loop", "is_told"),
    [
        (mapped, True),
        (two_own_rows, True),
        (the_row_before_of_another, False),
        (added_up, True),
        (own_rows, True),
        (rows_that_are_added, True),
        (chained, False),
        (running, False),
        (rows_by_number, False),
        (rows_in_turn, False),
        (one_row, False),
        (rows_from_the_last, False),
    ],
)
def test_loops_whose_turns_need_nothing_of_each_other_are_told(loop: Callable[..., Any], is_told: bool) -> None:
    lines = {line for name, line in states(loop, SQUARE) if name == names.INDEPENDENT_TURNS}
    last = len(inspect.getsource(_two_at_once if loop is two_own_rows else loop).splitlines()) - 1
    begin = _two_at_once.__code__.co_firstlineno - loop.__code__.co_firstlineno if loop is two_own_rows else 0
    assert lines == ({begin + last} if is_told else set())


def recurrent(xs: Any, w: Any, u: Any) -> Any:
    return jax.lax.scan(lambda h, x: (jax.numpy.tanh(x @ w + h @ u), None), xs[0] @ w, xs)[0]


def recurrent_after_one_product(xs: Any, w: Any, u: Any) -> Any:
    return jax.lax.scan(lambda h, x: (jax.numpy.tanh(x + h @ u), None), xs[0] @ w, xs @ w)[0]


def block_by_block(xs: Any, w: Any, u: Any) -> Any:
    def turn(largest: Any, x: Any) -> Any:
        return jax.numpy.maximum(largest, (x @ w - largest).max()), None

    return jax.lax.scan(turn, u[0, 0], xs)[0]


def test_products_in_a_loop_that_one_product_before_it_gives_are_told() -> None:
    given = [(32, 16, 128), SQUARE, SQUARE]
    assert states(recurrent, *given) == {(names.WITHOUT_STATE, 1)}
    gradient = jax.grad(lambda w, xs, u: recurrent(xs, w, u).sum())
    assert {name for name, _ in states(lambda *each: gradient(each[1], each[0], each[2]), *given)} == {
        names.WITHOUT_STATE
    }
    assert states(recurrent_after_one_product, *given) == set()
    assert states(block_by_block, (32, 16, 128), (128, 4096), SQUARE) == set()  # of which all would be too large


def moved(state: Any, rows: Any) -> Any:
    def turn(window: Any, row: Any) -> Any:
        window = jax.numpy.concatenate([window[1:], row[None]])
        return window, window.mean(0)

    return jax.lax.scan(turn, state, rows)[1]


def rolled(state: Any, rows: Any) -> Any:
    def turn(window: Any, row: Any) -> Any:
        window = jax.numpy.roll(window, -1, axis=0).at[-1].set(row)
        return window, window.mean(0)

    return jax.lax.scan(turn, state, rows)[1]


def replaced(state: Any, rows: Any) -> Any:
    def turn(kept: Any, row: Any) -> Any:
        window, at = kept
        window = window.at[at % 512].set(row)
        return (window, at + 1), window.mean(0)

    return jax.lax.scan(turn, (state, 0), rows)[1]


@pytest.mark.parametrize(("history", "lines"), [(moved, {2}), (rolled, {2}), (replaced, set())])
def test_arrays_that_each_turn_moves_by_a_row_are_told(history: Callable[..., Any], lines: set[int]) -> None:
    assert states(history, ROWS, SQUARE) == {(names.SHIFTED, line) for line in lines}


@pytest.mark.parametrize(
    ("function", "shapes", "is_told"),
    [
        (lambda x, edges: (x[0][:, None] >= edges[0]).sum(1), [(1, 65536), (1, 1024)], True),
        (lambda x: (x[0][:, None] > x[0]).sum(1), [(1, 8192)], True),
        (
            lambda x, mask: jax.numpy.where(jax.numpy.tri(1024, dtype=bool), x[:, None], 0).sum(-1),
            [(64, 1024)] * 2,
            True,
        ),
        (lambda x, edges: (x[0][:, None] >= edges[0]).sum(1), [(1, 65536), (1, 16)], False),
        (lambda x: jax.numpy.where(jax.numpy.tri(1024, dtype=bool), x @ x.T, 0).sum(-1), [(1024, 64)], False),
        (lambda x: jax.numpy.cumsum(x, -1), [(64, 1024)], False),
    ],
)
def test_sums_of_comparisons_of_all_pairs_are_told(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], is_told: bool
) -> None:
    assert {name for name, _ in states(function, *shapes)} == ({names.COMPARED_PAIRS} if is_told else set())


def test_large_arrays_of_64_bits_are_told() -> None:
    def scaled(x: Any) -> Any:
        return x * 2.0

    def apart(x: Any, y: Any) -> Any:  # each of which may be the same in each call
        return jax.numpy.tanh(x) @ x, jax.numpy.sort(y)

    assert states(scaled, SQUARE) == set()
    jax.config.update("jax_enable_x64", True)
    try:
        assert states(scaled, SQUARE, type_="float64") == {(names.DOUBLE, 1)}
        assert states(scaled, (4, 4), type_="float64") == set()
        assert states(apart, SQUARE, SQUARE, type_="float64") == {(names.DOUBLE, 1)}
    finally:
        jax.config.update("jax_enable_x64", False)
