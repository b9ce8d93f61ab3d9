# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""The name of an interpreted kernel is the one that it has on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl
from triton.compiler import ASTSource

from bragg.debug.host.driver import HostDriver
from bragg.debug.host.launch import prepare
from bragg.debug.host.specialization import specialize
from bragg.record.hooks.triton.kernel_names import specialization_of
from bragg.record.hooks.triton.specialization import specialized_name


@triton.jit
def kernel(x, y, n, stride, scale, bias, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pass


@triton.jit(do_not_specialize=["n"], repr=lambda given: f"chosen_{given.constants['N']}_{given.signature['x']}")
def chosen(x, n, N: tl.constexpr):
    pass


X, Y = np.zeros(64, "f2"), np.zeros(64, "i4")


@pytest.mark.parametrize(
    ("arguments", "named", "name"),
    [
        ((X, Y, 32, 1, 0.5, None), {}, "kernel<BM=16 BN=8 w4 s3 f16 i32 stride=1 bias=None>"),
        ((X, Y[1:], 30, 4, 2.0, Y), {"num_warps": 8}, "kernel<BM=16 BN=8 w8 s3 f16 i32 !16:y,n,stride>"),
        ((X, X, 2**40, 16, 2.0, X), {"num_stages": 1, "maxnreg": 64}, "kernel<BM=16 BN=8 w4 s1 f16 n:i64 maxnreg=64>"),
        ((X, (X, 1), 32, 16, True, None), {}, "kernel<BM=16 BN=8 w4 s3 f16 y.1=1 bias=None scale:u1>"),
    ],
)
def test_names_say_what_triton_would_compile(arguments: tuple[Any, ...], named: dict[str, Any], name: str) -> None:
    compiled = specialize(
        prepare(kernel, (1,), arguments, {"BLOCK_M": 16, "BLOCK_N": 8, **named}), HostDriver().get_current_target()
    )
    assert specialized_name(compiled.name, specialization_of(compiled)) == name


def test_a_name_that_the_program_chooses_is_kept() -> None:
    compiled = specialize(prepare(chosen, (1,), (X, 16, 4), {}), HostDriver().get_current_target())
    assert compiled.name == "chosen_4_*fp16"
    assert (1,) not in compiled.src.attrs


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_triton_compiles_the_source_that_is_described() -> None:
    launch = prepare(kernel, (1,), (X, Y[1:], 48, 1, 2.0, None), {"BLOCK_M": 16, "BLOCK_N": 8})
    target = HostDriver().get_current_target()
    described = specialize(launch, target).src
    compiled = triton.compile(ASTSource(kernel, described.signature, described.constants, described.attrs), target)
    assert "!tt.ptr<f16> {tt.divisibility = 16 : i32}" in compiled.asm["ttir"]
    assert "!tt.ptr<i32> loc" in compiled.asm["ttir"]
