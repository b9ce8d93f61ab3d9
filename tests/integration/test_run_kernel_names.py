"""Names and metric values that a framework gives to its launches, through the fake driver and the fake CUPTI."""

from __future__ import annotations

from tests.support.fake_gpu_runs import START, Record, kernels, values

TILED = f"""{START}
from bragg.core import core
tiled = gpu.function("matmul").value
core.name_kernel(tiled, "matmul<BM=64>", "matmul", [("source", "mm.py:3")])
"""


def test_a_kernel_goes_by_the_name_that_its_compiler_gave_it(record: Record) -> None:
    run = record("gpu.launch('matmul'); gpu.launch('other')", TILED)
    assert kernels(run.main) == {"matmul<BM=64>": 1, "other": 1}
    assert run.main.meta["attributes"] == {"matmul<BM=64>": {"source": "mm.py:3"}}


def test_a_name_does_not_follow_a_handle_to_another_kernel(record: Record) -> None:
    run = record("core.name_kernel(gpu.function('new').value, 'old<BM=64>', 'old'); gpu.launch('new')", TILED)
    assert kernels(run.main) == {"new": 1}


def test_values_of_a_launch_are_at_its_kernel_and_at_the_next_one_only(record: Record) -> None:
    run = record(
        """
        flops, rows = core.metric("flops"), core.metric("rows", "exclusive", is_float=False)
        with bragg.scope("step"):
            core.expect_launch(tiled, None, [(flops, 8.0), (rows, 3)])
            gpu.launch("matmul")
            gpu.launch("matmul")
            core.expect_launch(tiled, "renamed", [(flops, 1.0)])
            gpu.launch("matmul")
        """,
        TILED,
    )
    assert kernels(run.main) == {"step/matmul<BM=64>": 2, "step/renamed": 1}
    assert values(run.main, "flops") == {"step/matmul<BM=64>": 8.0, "step/renamed": 1.0}
    assert values(run.main, "rows") == {"step/matmul<BM=64>": 3}
    assert run.main.total("flops") == 9.0


def test_an_expectation_meets_its_own_kernel_only(record: Record) -> None:
    run = record("core.expect_launch(tiled, 'renamed'); gpu.launch('other'); gpu.launch('matmul')", TILED)
    assert kernels(run.main) == {"other": 1, "renamed": 1}


def test_durations_of_kernels_have_quantiles(record: Record) -> None:
    run = record("gpu.set_kernel_ns('k', 5000)\ngpu.launch_many('k', 40)")
    durations = run.main.durations
    assert int(durations.count.sum()) == 40
    (frame,) = set(durations.frame.tolist())
    assert abs(durations.quantiles(0.5, frame + 1)[frame] / 5000 - 1) < 0.04
    assert durations.first_ns.min() == run.main.meta["gpu_first_ns"]
