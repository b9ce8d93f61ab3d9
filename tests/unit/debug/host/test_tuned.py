"""Kernels under `@triton.autotune`: the configuration, the hooks and the cache are as in Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug

CONFIGS = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]


@triton.jit
def add(x, total, n, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total + tl.zeros_like(i), tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def grid(given: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(given["n"], given["BLOCK"]),)


def tuned(**options: Any) -> Any:
    return triton.autotune(configs=list(CONFIGS), key=["n"], **options)(add)


class Total(np.ndarray):
    """A tensor as far as an autotuner wants one."""

    def zero_(self) -> None:
        self[...] = 0


def zeros() -> Any:
    return np.zeros(1, "f4").view(Total)


def test_tensors_are_reset_when_a_configuration_is_chosen_and_not_before_each_launch() -> None:
    kernel, x, total = tuned(reset_to_zero=["total"]), np.ones(40, "f4"), zeros()
    total += 7
    with bragg.debug.interpret():
        kernel[grid](x, total, 40)
        assert total[0] == 40
        kernel[grid](x, total, 40)
        assert total[0] == 80
        kernel[grid](x, total, 39)
        assert total[0] == 39
        assert len(kernel.cache) == 2


def test_triton_finds_nothing_in_its_cache_that_it_has_not_measured() -> None:
    kernel = tuned()
    with bragg.debug.interpret(), bragg.debug.check():
        kernel[grid](np.ones(40, "f4"), zeros(), 40)
    assert kernel.cache == {}


def test_the_programs_model_chooses_the_configuration() -> None:
    kernel = tuned(prune_configs_by={"perf_model": lambda **given: -given["BLOCK"], "top_k": 1})
    with bragg.debug.interpret():
        kernel[grid](np.ones(40, "f4"), zeros(), 40)
    assert kernel.best_config is kernel.configs[1]


def test_hooks_are_called_as_around_one_measurement() -> None:
    seen: list[str] = []

    def before(arguments: dict[str, Any], reset_only: bool = False) -> None:
        seen.append("reset" if reset_only else f"before {arguments['n']} {arguments['BLOCK']}")

    def after(arguments: dict[str, Any], exception: Exception | None) -> None:
        seen.append(f"after {exception}")

    kernel = tuned(pre_hook=before, post_hook=after)
    with bragg.debug.interpret():
        for _ in range(2):
            kernel[grid](np.ones(40, "f4"), zeros(), 40)
    assert seen == ["before 40 16", "after None", "reset"]


def test_hooks_that_a_kernel_has_before_its_launches_are_called() -> None:
    seen: list[Any] = []
    kernel = triton.jit(add.fn)
    kernel.add_pre_run_hook(lambda *arguments, **named: seen.append((arguments[2:], named)))
    with bragg.debug.interpret():
        kernel[(3,)](np.ones(40, "f4"), zeros(), 40, BLOCK=16)
    assert seen == [((40,), {"BLOCK": 16})]


@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    tl.static_assert(BLOCK <= WIDTH)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_configurations_whose_static_assertions_do_not_hold_are_left_out() -> None:
    sizes = [triton.Config({"BLOCK": size}) for size in (64, 32, 16)]
    kernel, x = triton.autotune(configs=sizes, key=["n"])(doubled), np.ones(40, "f4")
    out = np.zeros(40, "f4")
    with bragg.debug.check() as report:
        for _ in range(2):
            kernel[grid](x, out, 40, WIDTH=16)
    assert report.lines()[1:] == [
        "doubled: 1 of 3 configurations executed: bragg check --vary executes more",
        "no findings in 2 launches of 6 programs",
    ]
    assert set(out) == {2}
    with bragg.debug.check() as report, pytest.raises(triton.CompilationError, match="static assertion"):
        kernel[grid](x, out, 40, WIDTH=8)
    assert [finding.rule for finding in report] == ["kernel-fault"]


def test_configurations_that_an_autotuner_of_the_program_measures_in_vain_are_left_out() -> None:
    class Tuner(triton.runtime.Autotuner):  # type: ignore[misc, name-defined]
        """Measures by itself."""

        def _bench(self, size: int) -> Any:
            try:
                doubled[(1,)](np.ones(4, "f4"), np.ones(4, "f4"), 4, BLOCK=size, WIDTH=16)
            except triton.compiler.errors.CompileTimeAssertionFailure:
                return float("inf")
            return 1.0

    tuner = Tuner(doubled, doubled.arg_names, [], ["n"], None, None)
    with bragg.debug.check() as report:
        assert [tuner._bench(size) for size in (32, 16)] == [float("inf"), 1]
    assert not len(report), report.lines()


def test_the_report_says_how_many_configurations_were_executed() -> None:
    sizes = [triton.Config({"BLOCK": size}) for size in (16, 32)]
    kernel, x = triton.autotune(configs=sizes, key=["n"])(doubled), np.ones(40, "f4")
    with bragg.debug.check(add=["launch-dependence"]) as report:
        kernel[grid](x, np.zeros(40, "f4"), 40, WIDTH=64)
    assert report.lines()[1:3] == [
        "doubled: 2 of 2 configurations executed",
        "doubled: executed again with another configuration",
    ]


def test_varying_says_why_the_other_configurations_were_not_executed() -> None:
    sizes = [triton.Config({"BLOCK": size}) for size in (16, 32)]
    kernel, x = triton.autotune(configs=sizes, key=["n"])(doubled), np.ones(40, "f4")
    with bragg.debug.check(add=["launch-dependence"]) as report:
        kernel[grid](x, np.zeros(20, "f4"), 40, WIDTH=64)
    assert [one.rule for one in report] == ["out-of-bounds"]
    said = "doubled: 1 of 2 configurations executed: the others fail, so mend what was found first"
    assert said in report.lines()


def test_configurations_that_were_left_out_after_a_difference_are_not_counted() -> None:
    sizes = [triton.Config({"BLOCK": size}) for size in (16, 32, 64)]
    kernel, x = triton.autotune(configs=sizes, key=["n"])(doubled), np.ones(160, "f4")
    with bragg.debug.check(only=["launch-dependence"]) as report:
        kernel[lambda _: (3,)](x, np.zeros(160, "f4"), 160, WIDTH=64)
    assert len(report)
    assert "doubled: 2 of 3 configurations executed" in report.lines()


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        (
            lambda meta: (triton.cdiv(40, meta["BLOCK"]),),
            ["doubled: executed again with another order of programs, BLOCK"],
        ),
        (
            (1,),
            [
                "note: doubled: not varied: BLOCK (the grid does not ask for it, "
                "as lambda meta: ... meta['BLOCK'] does)",
                "doubled: not executed in another way",
            ],
        ),
    ],
)
def test_the_report_says_what_was_varied(programs: Any, said: list[str]) -> None:
    with bragg.debug.check(add=["order-dependence", "launch-dependence"]) as report:
        doubled[programs](np.ones(40, "f4"), np.zeros(40, "f4"), 40, BLOCK=16, WIDTH=64)
    assert report.lines()[1:] == [*said, report.summary()]


@triton.jit
def row_variances(x, out, n, CENTRED: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    apart = value - tl.sum(value) / n
    if CENTRED:
        apart = tl.where(i < n, apart, 0.0)
    tl.store(out + tl.program_id(0), tl.sum(apart * apart) / n)


@pytest.mark.parametrize("centred", [True, False])
def test_masked_lanes_that_count_in_a_reduction_show_with_a_wider_block(centred: bool) -> None:
    x, out = np.arange(3 * 20, dtype="f4").reshape(3, 20), np.zeros(3, "f4")
    with bragg.debug.check(add=["launch-dependence"], without=["masked-lanes"]) as report:
        row_variances[(3,)](x, out, 20, CENTRED=centred, BLOCK=32)
    assert "row_variances: executed again with another BLOCK" in report.lines()
    assert [one.message for one in report] == [
        "elements of out change with BLOCK, which should not matter" for _ in range(not centred)
    ]
    if not centred:
        assert report.findings[0].hint.startswith("Look at what lanes hold that masks leave out")


def test_a_wider_block_is_told_with_the_lanes_that_make_it_matter() -> None:
    x, out = np.arange(3 * 20, dtype="f4").reshape(3, 20), np.zeros(3, "f4")
    with bragg.debug.check(add=["launch-dependence"]) as report:
        row_variances[(3,)](x, out, 20, CENTRED=False, BLOCK=32)
    assert [one.rule for one in report] == ["masked-lanes", "launch-dependence"]
    told = [line for line in report.lines() if "may follow from it" in line]
    place = f"launch-dependence at line {report.findings[1].line} (out)"
    assert told == [f"  1 more may follow from it, so check again when it is mended: {place}"]


@triton.jit
def constant_of_block(out, BLOCK: tl.constexpr):  # noqa: N803
    tl.store(out, BLOCK)


def test_of_two_configurations_what_differs_is_shown() -> None:
    sizes = [triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((16, 4), (32, 8))]
    kernel = triton.autotune(configs=sizes, key=[])(constant_of_block)
    with bragg.debug.check(only=["launch-dependence"]) as report:
        kernel[(1,)](np.zeros(1, "i4"))
    change = "BLOCK=32, num_warps=8 instead of BLOCK=16, num_warps=4"
    assert [one.example for one in report] == [f"out[0] is 16, and 32 with {change}"]
