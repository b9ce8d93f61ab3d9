"""Kernels of Mosaic GPU: warpgroups, barriers, copies between memories and products that run beside them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault, Unsupported

pytest.importorskip("triton")
pytest.importorskip("absl")
jax = pytest.importorskip("jax")
pytest.importorskip("jax._src.pallas.mpmd")
pl = pytest.importorskip("jax.experimental.pallas")
plgpu = pytest.importorskip("jax.experimental.pallas.mosaic_gpu")
jnp = jax.numpy

TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def vector(*extents: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(extents, dtype)


def told(report: Any) -> set[tuple[str, str]]:
    return {(one.rule, one.code.partition("# ")[2]) for one in report}


def doubles(*, waits: bool = True, commits: bool = True, drains: bool = True) -> Any:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        part = pl.ds(jax.lax.axis_index("i") * 128, 128)
        plgpu.copy_gmem_to_smem(x_gmem.at[part], smem, barrier)  # load
        if waits:
            plgpu.barrier_wait(barrier)
        smem[...] = smem[...] * 2  # use
        if commits:
            plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(smem, o_gmem.at[part])  # store
        if drains:
            plgpu.wait_smem_to_gmem(0)

    memory = [plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()]
    return plgpu.kernel(body, out_type=vector(500), scratch_types=memory, grid=(4,), grid_names=("i",))


def test_copies_are_there_once_their_barrier_was_waited_for_and_end_at_the_edge_of_an_array() -> None:
    x = jnp.arange(500, dtype=jnp.float32)
    with bragg.debug.check() as report:
        out = doubles()(x)
    assert (len(report), report.programs) == (0, 4), report.lines()
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("waits", {("missing-wait", "use"), ("missing-wait", "load"), ("missing-wait", "store")}),
        ("commits", {("missing-barrier", "store")}),
        ("drains", {("missing-wait", "store")}),
    ],
)
def test_what_is_not_waited_for_is_told_at_its_line(missing: str, expected: set[tuple[str, str]]) -> None:
    with bragg.debug.check() as report:
        doubles(**{missing: False})(jnp.zeros(500))
    assert told(report) - {("uninitialised-read", "use")} == expected


def multiplies(waits_for: int = 1, steps_in_flight: int = 2) -> Any:
    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, o_smem: Any) -> None:
        m, n = jax.lax.axis_index("m"), jax.lax.axis_index("n")

        def scope(acc: Any) -> Any:
            def step(_: Any, a_smem: Any, b_smem: Any) -> None:
                plgpu.wgmma(acc, a_smem, plgpu.transpose_ref(b_smem, (1, 0)))  # product
                plgpu.wgmma_wait(waits_for)

            plgpu.emit_pipeline(
                step,
                grid=(4,),
                in_specs=[
                    plgpu.BlockSpec((64, 64), lambda k: (m, k), transforms=TILES, delay_release=1),
                    plgpu.BlockSpec((64, 64), lambda k: (n, k), transforms=TILES, delay_release=1),
                ],
                max_concurrent_steps=steps_in_flight,
            )(a_gmem, b_gmem)
            return acc[...]

        o_smem[...] = pl.run_scoped(scope, plgpu.ACC((64, 64), jnp.float32)).astype(jnp.float16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[pl.ds(m * 64, 64), pl.ds(n * 64, 64)])
        plgpu.wait_smem_to_gmem(0)

    memory = [plgpu.SMEM((64, 64), jnp.float16, transforms=TILES)]
    names = {"grid": (1, 2), "grid_names": ("m", "n")}
    return plgpu.kernel(body, out_type=vector(64, 128, dtype=jnp.float16), scratch_types=memory, **names)


def operands() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 4, (rows, 256)).astype(np.float16) for rows in (64, 128))
    return a, b, (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16)


def test_a_pipeline_of_products_is_right_and_reads_a_transposed_operand() -> None:
    a, b, expected = operands()
    with bragg.debug.check() as report:
        out = multiplies()(jnp.asarray(a), jnp.asarray(b))
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, expected)


def test_operands_that_are_overwritten_while_a_product_reads_them_are_told() -> None:
    a, b, _ = operands()
    with bragg.debug.check() as report:
        multiplies(waits_for=2)(jnp.asarray(a), jnp.asarray(b))
    assert {one.rule for one in report} == {"missing-wait"}
    assert any("while wgmma of line" in one.message for one in report)


def hands_over(*, arrivals: int = 1, loads: int = 3) -> Any:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, full: Any, free: Any) -> None:
        number = jax.lax.axis_index("wg")

        @pl.when(number == 0)
        def _() -> None:
            for k in range(loads):
                if k:
                    plgpu.barrier_wait(free)
                plgpu.copy_gmem_to_smem(x_gmem.at[k], smem, full)

        @pl.when(number == 1)
        def _() -> None:
            for k in range(3):
                plgpu.barrier_wait(full)  # full
                o_gmem[k] = smem[...] + 1
                plgpu.barrier_arrive(free)

    memory = [plgpu.SMEM((128,), jnp.float32), plgpu.Barrier(num_arrivals=arrivals), plgpu.Barrier()]
    return plgpu.kernel(body, out_type=vector(3, 128), scratch_types=memory, num_threads=2, thread_name="wg")


def test_warpgroups_take_turns_at_barriers() -> None:
    x = jnp.arange(3 * 128, dtype=jnp.float32).reshape(3, 128)
    with bragg.debug.check() as report:
        out = hands_over()(x)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("wrong", [{"arrivals": 2}, {"loads": 2}])
def test_a_hang_is_told_with_the_barriers_and_lines_of_all_that_wait(wrong: dict[str, int]) -> None:
    with (
        bragg.debug.check(),
        pytest.raises(KernelFault, match=r"warpgroup 1 waits in line \d+ for full, of which") as hung,
    ):
        hands_over(**wrong)(jnp.zeros((3, 128)))
    assert ("warpgroup 0 waits" in str(hung.value)) == ("arrivals" in wrong)


def test_blocks_that_write_one_element_race() -> None:
    def body(o_gmem: Any) -> None:
        o_gmem[0] = jax.lax.axis_index("i").astype(jnp.float32)  # race

    run = plgpu.kernel(body, out_type=vector(1), grid=(2,), grid_names=("i",))
    with bragg.debug.check() as report:
        run()
    assert told(report) == {("data-race", "race")}


def test_a_pallas_call_may_use_barriers_and_copies() -> None:
    def body(x_gmem: Any, o_ref: Any, smem: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(pl.program_id(0) * 128, 128)], smem, barrier)
        plgpu.barrier_wait(barrier)
        o_ref[...] = smem[...] + 1

    run = pl.pallas_call(
        body,
        grid=(2,),
        in_specs=[pl.BlockSpec(memory_space=plgpu.GMEM)],
        out_specs=pl.BlockSpec((128,), lambda i: (i,)),
        out_shape=vector(256),
        scratch_shapes=[plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()],
        compiler_params=plgpu.CompilerParams(),
    )
    x = jnp.arange(256, dtype=jnp.float32)
    with bragg.debug.check() as report:
        out = run(x)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, x + 1)


def test_what_is_not_executed_is_refused_by_its_name() -> None:
    def body(x_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_gmem, smem, barrier, collective_axes="c")
        plgpu.barrier_wait(barrier)
        o_gmem[...] = smem[...]

    memory = [plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()]
    cluster = {"cluster": (2,), "cluster_names": ("c",)}
    run = functools.partial(plgpu.kernel, out_type=vector(128), scratch_types=memory)
    with bragg.debug.check(), pytest.raises(Unsupported, match="copy_gmem_to_smem with collective_axes"):
        run(body, **cluster)(jnp.zeros(128))
