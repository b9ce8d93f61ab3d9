"""What Pallas kernels of one backend have: masks and atomics of Triton; scalars, scratch and copies of TPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

pytest.importorskip("triton")
jax = pytest.importorskip("jax")
pl = pytest.importorskip("jax.experimental.pallas")
plgpu = pytest.importorskip("jax.experimental.pallas.triton")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
jnp = jax.numpy
semaphores = pl if hasattr(pl, "semaphore_wait") else pltpu

ON_TRITON: dict[str, Any] = {"compiler_params": plgpu.CompilerParams()}
ROWS = (8, 128)


def shape(*extents: int) -> Any:
    return jax.ShapeDtypeStruct(extents, jnp.float32)


def matrix(rows: int) -> Any:
    return jnp.arange(rows * 128, dtype=jnp.float32).reshape(rows, 128)


def adds_one(x_ref: Any, o_ref: Any, limit: int = 40) -> None:
    place = pl.ds(pl.program_id(0) * 16, 16)
    mask = pl.program_id(0) * 16 + jnp.arange(16) < limit
    plgpu.store(o_ref.at[place], plgpu.load(x_ref.at[place], mask=mask, other=0.0) + 1, mask=mask)


def test_masks_say_which_lanes_are_accessed() -> None:
    x = jnp.arange(40, dtype=jnp.float32)
    with bragg.debug.check() as report:
        out = pl.pallas_call(adds_one, grid=(3,), out_shape=shape(40), **ON_TRITON)(x)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, np.arange(40) + 1)


def test_a_mask_that_lets_lanes_outside_is_told() -> None:
    def adds_too_much(x_ref: Any, o_ref: Any) -> None:
        adds_one(x_ref, o_ref, limit=41)

    with bragg.debug.check() as report:
        pl.pallas_call(adds_too_much, grid=(3,), out_shape=shape(40), **ON_TRITON)(jnp.zeros(40))
    assert {(one.rule, one.tensor.name if one.tensor else "", one.lanes) for one in report} == {
        ("out-of-bounds", "x_ref", 1),
        ("out-of-bounds", "o_ref", 1),
    }


def counts(x_ref: Any, _total: Any, o_ref: Any) -> None:
    plgpu.atomic_add(o_ref, (0,), x_ref[pl.program_id(0)])


def counts_and_looks(x_ref: Any, total_ref: Any, o_ref: Any) -> None:
    counts(x_ref, total_ref, o_ref)
    x_ref[0] = o_ref[0]  # bug


@pytest.mark.parametrize("kernel", [counts, counts_and_looks])
def test_atomics_of_several_programs_are_no_race_and_other_accesses_are(kernel: Any) -> None:
    x = jnp.arange(8, dtype=jnp.float32)
    sums = pl.pallas_call(kernel, grid=(8,), out_shape=shape(1), input_output_aliases={1: 0}, **ON_TRITON)
    with bragg.debug.check() as report:
        total = sums(x, jnp.zeros(1))
    if kernel is counts:
        assert len(report) == 0, report.lines()
        assert float(total[0]) == 28
    else:
        assert {one.rule for one in report} == {"data-race"}
        assert any(one.code.endswith("# bug") for one in report)


def doubles(_rows: Any, x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * 2


def test_scalars_choose_blocks_and_how_many_programs_there_are() -> None:
    x, rows = matrix(32), jnp.array([3, 1], jnp.int32)
    block, chosen = pl.BlockSpec(ROWS, lambda i, rows: (i, 0)), pl.BlockSpec(ROWS, lambda i, rows: (rows[i], 0))

    def run(n: Any) -> Any:
        grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(n,), in_specs=[chosen], out_specs=block)
        return pl.pallas_call(doubles, grid_spec=grid, out_shape=shape(16, 128))(rows, x)

    with bragg.debug.check() as report:
        whole, first = run(2), run(jnp.int32(1))
    assert len(report) == 0, report.lines()
    assert report.programs == 3
    np.testing.assert_array_equal(whole, 2 * np.concatenate([x[24:], x[8:16]]))
    np.testing.assert_array_equal(first[:8], 2 * x[24:])


def sums_blocks(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        total_ref[...] = jnp.zeros(ROWS, jnp.float32)

    total_ref[...] += x_ref[...]
    o_ref[...] = total_ref[...]


def test_scratch_of_a_tpu_stays_from_one_program_to_the_next() -> None:
    x = matrix(32)
    block, same = pl.BlockSpec(ROWS, lambda i: (i, 0)), pl.BlockSpec(ROWS, lambda i: (0, 0))
    with bragg.debug.check() as report:
        total = pl.pallas_call(
            sums_blocks,
            grid=(4,),
            in_specs=[block],
            out_specs=same,
            out_shape=shape(*ROWS),
            scratch_shapes=[pltpu.VMEM(ROWS, jnp.float32)],
        )(x)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(total, np.asarray(x).reshape(4, *ROWS).sum(0))


def copies(starts: bool, waits: bool) -> Any:
    def kernel(x_ref: Any, o_ref: Any, scratch_ref: Any, arrived: Any) -> None:
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(8, 16)].at[pl.ds(8, 8)], scratch_ref, arrived.at[1])
        if starts:
            copy.start()  # start
        if waits:
            copy.wait()
        o_ref[...] = scratch_ref[...] * 2  # read

    scratch = [pltpu.VMEM(ROWS, jnp.float32), pltpu.SemaphoreType.DMA((2,))]
    anywhere = [pl.BlockSpec(memory_space=pl.ANY)]
    return pl.pallas_call(kernel, out_shape=shape(*ROWS), in_specs=anywhere, scratch_shapes=scratch)


def test_a_copy_is_there_once_it_was_waited_for() -> None:
    with bragg.debug.check() as report:
        out = copies(starts=True, waits=True)(matrix(32))
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, matrix(32)[16:24] * 2)


def test_a_copy_that_nobody_waits_for_is_told_where_it_is_read_and_where_it_starts() -> None:
    with bragg.debug.check() as report:
        copies(starts=True, waits=False)(matrix(32))
    assert {(one.rule, one.code.split("# ")[1]) for one in report} == {
        ("uninitialised-read", "read"),
        ("missing-wait", "start"),
    }


def test_a_wait_for_what_was_not_started_is_a_deadlock() -> None:
    with bragg.debug.check(), pytest.raises(KernelFault, match="a copy is waited for that was not started"):
        copies(starts=False, waits=True)(matrix(32))


@pytest.mark.parametrize("signals", [2, 1])
def test_a_semaphore_counts_and_a_wait_for_more_is_a_deadlock(signals: int) -> None:
    def kernel(x_ref: Any, o_ref: Any, semaphore: Any) -> None:
        for _ in range(signals):
            semaphores.semaphore_signal(semaphore)
        semaphores.semaphore_wait(semaphore, 2)
        o_ref[...] = x_ref[...] + semaphores.semaphore_read(semaphore)

    scratch = [pltpu.SemaphoreType.REGULAR]
    run = pl.pallas_call(kernel, out_shape=shape(*ROWS), scratch_shapes=scratch)
    with bragg.debug.check() as report:
        if signals == 2:
            np.testing.assert_array_equal(run(matrix(8)), matrix(8))
        else:
            with pytest.raises(KernelFault, match="until it counts 2, and it counts 1"):
                run(matrix(8))
    assert len(report) == 0, report.lines()


def replaces_a_part(x_ref: Any, o_ref: Any) -> None:
    is_own = jnp.arange(128) < 100
    o_ref[...] = jax.lax.select(jnp.broadcast_to(is_own, ROWS), x_ref[...], o_ref[...])


def test_what_is_chosen_against_an_unwritten_block_is_no_use_of_it() -> None:
    with bragg.debug.check() as report:
        pl.pallas_call(replaces_a_part, out_shape=shape(*ROWS))(matrix(8))
    assert len(report) == 0, report.lines()
