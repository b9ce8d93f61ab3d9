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
