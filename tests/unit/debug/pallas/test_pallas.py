"""Pallas kernels of JAX: what is planted is found at its line, correct kernels are right and clean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")
jax = pytest.importorskip("jax")
pl = pytest.importorskip("jax.experimental.pallas")
jnp = jax.numpy

BLOCK = 8


def of_rows(index: int) -> tuple[int]:
    return (index,)


def call(kernel: Any, *given: Any, size: int = 32, programs: int = 4, same: bool = False, **named: Any) -> Any:
    """A kernel on blocks of each array; `same`: all programs get one block of the result."""
    blocks = [pl.BlockSpec((BLOCK,), of_rows) for _ in given]
    out = pl.BlockSpec((BLOCK,), (lambda index: (0,)) if same else of_rows)
    shape = jax.ShapeDtypeStruct((size,), jnp.float32)
    return pl.pallas_call(kernel, grid=(programs,), in_specs=blocks, out_specs=out, out_shape=shape, **named)(*given)


def numbers(size: int = 32) -> Any:
    return jnp.arange(size, dtype=jnp.float32)


def adds(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + y_ref[...]


def adds_by_halves(x_ref: Any, o_ref: Any) -> None:
    def half(k: Any, total: Any) -> Any:
        return total + jnp.sum(x_ref[pl.ds(k * 4, 4)])

    total = jax.lax.fori_loop(0, 2, half, jnp.float32(0))

    @pl.when(pl.program_id(0) < 2)
    def _() -> None:
        o_ref[...] = jnp.full((BLOCK,), total)

    @pl.when(pl.program_id(0) >= 2)
    def _() -> None:
        o_ref[0] = total
        o_ref[1:] = x_ref[1:] * 0
        o_ref[0] += 1


def gathers(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[x_ref[...].astype(jnp.int32) % BLOCK]


def multiplies(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] @ y_ref[...]


def reads_one_too_far(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[pl.ds(pl.program_id(0), BLOCK)]  # bug


def writes_past_its_block(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]
    o_ref[pl.program_id(0) * 4] = 1.0  # bug


def adds_to_what_nobody_wrote(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] += x_ref[...]  # bug


def writes_one_block(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]  # bug


PLANTED = {
    reads_one_too_far: ("out-of-bounds", "x_ref", {1, 2, 3}, False),
    writes_past_its_block: ("out-of-bounds", "o_ref", {2, 3}, False),
    adds_to_what_nobody_wrote: ("uninitialised-read", "o_ref", {0, 1, 2, 3}, False),
    writes_one_block: ("data-race", "o_ref", {1, 2, 3}, True),
}


@pytest.mark.parametrize("kernel", PLANTED)
def test_planted_bug_is_found_at_its_line(kernel: Callable[..., None]) -> None:
    rule, tensor, programs, same = PLANTED[kernel]
    with bragg.debug.check() as report:
        call(kernel, numbers(), size=BLOCK if same else 32, same=same)
    (finding,) = report
    assert (finding.rule, finding.kernel, finding.programs) == (rule, kernel.__name__, programs)
    assert finding.code.endswith("# bug")
    assert finding.file == __file__
    assert finding.tensor is not None
    assert finding.tensor.name == tensor
    assert report.launches == 1


def test_correct_kernels_are_right_and_clean() -> None:
    x = numbers()
    with bragg.debug.check() as report:
        total = jax.jit(partial(call, adds))(x, x)
        halves = call(adds_by_halves, x)
        gathered = call(gathers, x)
    assert len(report) == 0, report.lines()
    assert (report.launches, report.programs) == (3, 12)
    np.testing.assert_array_equal(total, 2 * np.arange(32))
    np.testing.assert_array_equal(gathered, x)
    sums = np.arange(32).reshape(4, 8).sum(1)
    expected = [*np.repeat(sums[:2], 8), sums[2] + 1, *([0] * 7), sums[3] + 1, *([0] * 7)]
    np.testing.assert_array_equal(halves, expected)


def test_products_by_blocks_of_two_axes() -> None:
    a, b = jax.random.normal(jax.random.key(0), (32, 24)), jax.random.normal(jax.random.key(1), (24, 48))
    rows, columns = pl.BlockSpec((16, 24), lambda i, j: (i, 0)), pl.BlockSpec((24, 16), lambda i, j: (0, j))
    tiles, shape = pl.BlockSpec((16, 16), lambda i, j: (i, j)), jax.ShapeDtypeStruct((32, 48), jnp.float32)
    with bragg.debug.check() as report:
        c = pl.pallas_call(multiplies, grid=(2, 3), in_specs=[rows, columns], out_specs=tiles, out_shape=shape)(a, b)
    assert len(report) == 0, report.lines()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_the_last_block_may_reach_over_the_end() -> None:
    with bragg.debug.check() as report:
        out = call(adds, numbers(30), numbers(30), size=30)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, 2 * np.arange(30))


def test_a_result_over_an_input_is_written_in_place() -> None:
    with bragg.debug.check() as report:
        out = call(adds_to_what_nobody_wrote, numbers(), input_output_aliases={0: 0})
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, 2 * np.arange(32))


def test_what_vmap_and_jvp_make_of_a_kernel_is_checked() -> None:
    x = numbers(64).reshape(2, 32)
    with bragg.debug.check() as report:
        mapped = jax.vmap(partial(call, adds_by_halves))(x)
        _, slope = jax.jvp(lambda x: call(adds, x, x), (x[0],), (jnp.ones(32),))
    assert len(report) == 0, report.lines()
    assert report.launches == 2
    with bragg.debug.check():
        np.testing.assert_array_equal(mapped[1], call(adds_by_halves, x[1]))
    np.testing.assert_array_equal(slope, np.full(32, 2))


def test_a_bug_below_vmap_is_found() -> None:
    with bragg.debug.check() as report:
        jax.vmap(partial(call, writes_past_its_block))(jnp.ones((2, 32)))
    assert [(one.rule, one.code.endswith("# bug")) for one in report] == [("out-of-bounds", True)]


def test_jax_is_as_before_after_a_check() -> None:
    from jax._src.pallas.pallas_call import pallas_call_p

    before = pallas_call_p.impl, jax.config.jax_disable_jit
    with bragg.debug.check():
        assert pallas_call_p.impl is not before[0]
    assert (pallas_call_p.impl, jax.config.jax_disable_jit) == before
