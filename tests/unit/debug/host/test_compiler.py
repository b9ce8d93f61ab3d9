# ruff: noqa: N803, SIM108 - kernels are written as in Triton's own code
"""Names whose type depends on the way that programs take are refused as Triton refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.host import compiler


@triton.jit
def number_of_two_types(x, n):
    if n > 3:
        v = 1
    else:
        v = 1.5
    tl.store(x, v)


@triton.jit
def block_of_two_shapes(x, n):
    v = tl.zeros([4], tl.float32)
    if n > 3:
        v = tl.zeros([1], tl.float32)
    tl.store(x + tl.arange(0, 4), v)


@triton.jit
def part_of_two_types(x, n):
    v = (n, 1.0)
    if n > 3:
        v = (n, n)
    tl.store(x, v[1])


@triton.jit
def new_type_on_both_ways(x, n):
    v = tl.zeros([4], tl.float32)
    if n + tl.program_id(0) > 3:
        v = tl.zeros([4], tl.int32)
    else:
        v = tl.full([4], 1, tl.int32)
    tl.store(x + 4 * tl.program_id(0) + tl.arange(0, 4), v)


@triton.jit
def scaled(value, n):
    if n > 3:
        value *= 0.5
    return value


@triton.jit
def integer_scaled(x, n):
    tl.store(x, scaled(tl.program_id(0), n))


@triton.jit
def sides_of_two_types(x, n):
    tl.store(x, 1 if n > 3 else 1.5)


def line_of(kernel: Any, text: str) -> str:
    lines, first = kernel.raw_src, kernel.starting_line_number
    return f"test_compiler.py:{first + next(k for k, line in enumerate(lines) if text in line)}: "


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize(
    ("kernel", "holder", "message"),
    [
        (number_of_two_types, number_of_two_types, r"Mismatched type for v between then block \(int32\) and"),
        (block_of_two_shapes, block_of_two_shapes, r"initial value for `v` is of type fp32\[4\], but the then"),
        (part_of_two_types, part_of_two_types, "initial value for `v` is of type "),
        (new_type_on_both_ways, new_type_on_both_ways, r"initial value for `v` is of type fp32\[4\]"),
        (integer_scaled, scaled, r"initial value for `value` is of type int32\[\]"),
        (sides_of_two_types, sides_of_two_types, "inconsistent types int32 and fp32"),
    ],
)
def test_two_types_are_refused_whichever_way_programs_take(kernel: Any, holder: Any, message: str, n: int) -> None:
    with bragg.debug.check() as report, pytest.raises(triton.CompilationError, match=message) as caught:
        kernel[(2,)](np.ones(8, "f4"), n)
    assert line_of(holder, " if ") in str(caught.value)
    assert [finding.rule for finding in report][-1] == "kernel-fault"


@triton.jit
def two_types_in_turn(x, n):
    for k in range(n):
        if k % 2 == 0:
            v = 1
        else:
            v = 1.5
        tl.store(x, v)


def test_two_types_are_refused_where_each_trip_of_a_loop_goes_one_way() -> None:
    for n in (1, 2):
        with bragg.debug.check(), pytest.raises(triton.CompilationError, match="Mismatched type for v"):
            two_types_in_turn[(1,)](np.ones(1, "f4"), n)


@triton.jit
def goes_both_ways(x, n):
    v = tl.zeros([4], tl.float32)
    for k in range(n):
        if k % 2 == 0:
            v += 1.0
        else:
            v -= 2.0
    tl.store(x + tl.arange(0, 4), v)


def test_the_compiler_is_not_asked_where_programs_go_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("bragg.debug.host.compiler._have_one_type", lambda launch, target: asked.append(launch) or True)
    for n in (2, 1):
        with bragg.debug.check() as report:
            goes_both_ways[(1,)](np.ones(4, "f4"), n)
        assert not len(report), report.lines()
        assert len(asked) == 2 - n


@triton.jit
def one_type(x, n, WIDE: tl.constexpr):
    tl.static_print("compiled")
    v = tl.zeros([4], tl.float32)
    if n > 3:
        v += 1.0
    if WIDE:
        v = tl.zeros([8], tl.float32)
    tl.store(x + tl.arange(0, 8 if WIDE else 4), v)


def test_one_type_on_all_ways_is_fine_and_the_question_is_not_heard(capsys: pytest.CaptureFixture[str]) -> None:
    for wide in (False, True):
        with bragg.debug.check() as report:
            one_type[(1,)](np.ones(8, "f4"), 2, wide)
        assert not len(report), report.lines()
    assert capsys.readouterr().out.count("compiled") == 2


@triton.jit(do_not_specialize=["n"])
def counted(x, n):
    v = n
    if tl.load(x) > 3:
        v = n + 1
    tl.store(x, v)


def test_numbers_that_are_not_specialized_are_tensors() -> None:
    x = np.ones(1, "i4")
    with bragg.debug.check() as report:
        counted[(1,)](x, 1)
    assert not len(report), report.lines()
    assert x.tolist() == [1]


def test_the_compiler_is_asked_for_the_gpu_that_kernels_are_checked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    lower = compiler._lower
    monkeypatch.setattr(
        compiler, "_lower", lambda source, options, gpu: asked.append(gpu) or lower(source, options, gpu)
    )
    for name in ("sm_100", "gfx942", "sm_100"):
        with bragg.debug.check(target=name) as report:
            goes_both_ways[(1,)](np.ones(4, "f4"), 1)
        assert not len(report), report.lines()
    assert [(gpu.backend, gpu.arch) for gpu in asked] == [("cuda", 100), ("hip", "gfx942")]
