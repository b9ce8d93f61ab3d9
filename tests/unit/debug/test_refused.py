# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""What Triton refuses is refused with Triton's own exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.errors import UsageError


def run(kernel: Any, *arguments: Any, **named: Any) -> None:
    with bragg.debug.check() as report:
        kernel[(1,)](*arguments, **named)
    assert not len(report), report.lines()


@triton.jit
def signs_differ(x, y):
    tl.load(x) % tl.load(y)


@triton.jit
def bits_of_floats(x, y):
    tl.load(x) & tl.load(y).to(tl.float32)


@triton.jit
def axis_beyond(x, y):
    tl.expand_dims(tl.arange(0, 4), -3)


@triton.jit
def axis_twice(x, y):
    tl.expand_dims(tl.arange(0, 4), (0, -3))


@triton.jit
def sliced(x, y):
    x[10:]


@triton.jit
def fourth_axis(x, y):
    tl.program_id(20)


@triton.jit
def too_large(x, y):
    tl.load(x) + 0xFFFFFFFFFFFFFF


@triton.jit
def not_a_tuple(x, y):
    tl.static_assert(not (0, 0))


@triton.jit
def expands_nothing(x, y):
    tl.expand_dims(None, -1)


@triton.jit
def sums_more_than_there_are(x, y):
    a = tl.full((64, 64), 0.0, tl.float8e5)
    tl.dot(a, a, max_num_imprecise_acc=128)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (not_a_tuple, "`not` of a tuple"),
        (expands_nothing, "None"),
        (sums_more_than_there_are, r"max_num_imprecise_acc \(128\) must be <= K \(64\)"),
        (signs_differ, "Cannot use .* because they have different signedness"),
        (bits_of_floats, "invalid operands of type"),
        (axis_beyond, "invalid axis -3"),
        (axis_twice, r"duplicate axes, normalized axes = \[0, 0\]"),
        (sliced, "unsupported tensor index"),
        (fourth_axis, "program_id axis must be 0, 1, or 2 but got 20"),
        (too_large, "out of range"),
    ],
)
def test_what_triton_refuses_raises_what_triton_raises(kernel: Any, message: str) -> None:
    x, y = np.ones(1, "i4"), np.ones(1, "u4")
    with bragg.debug.check() as report, pytest.raises(triton.CompilationError, match=message) as caught:
        kernel[(1,)](x, y)
    assert isinstance(caught.value, KernelFault)
    assert str(caught.value.__cause__) in str(caught.value)
    assert [finding.rule for finding in report] == ["kernel-fault"]


@triton.jit
def indexed_pointer(x, N: tl.constexpr):
    for i in range(N):
        v = x[i]
        tl.store(x + N, v)


@triton.jit
def indexed_twice(x, N: tl.constexpr):
    tl.store(x + N, x[0] + x[1])


@pytest.mark.parametrize(
    ("kernel", "fix"),
    [
        (indexed_pointer, "tl.load(x + i)"),
        (indexed_twice, "tl.load(pointer + index), with tl.arange for several elements"),
    ],
)
def test_who_indexes_a_pointer_is_told_how_to_load(kernel: Any, fix: str) -> None:
    with bragg.debug.check() as report, pytest.raises(triton.CompilationError, match="a pointer is loaded from"):
        kernel[(1,)](np.ones(4, "f4"), 2)
    assert [finding.hint for finding in report] == [fix]


@triton.jit
def narrow_pointers(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N)[None, :], tl.zeros((N, N), tl.float32))


@triton.jit
def narrow_pointers_by_mask(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i[None, :], 0.0, mask=i[:, None] < i[None, :])


@pytest.mark.parametrize("kernel", [narrow_pointers, narrow_pointers_by_mask])
def test_pointers_are_not_expanded_to_what_is_stored(kernel: Any) -> None:
    with bragg.debug.check(), pytest.raises(triton.CompilationError, match=r"to have shape \[4, 4\] but got \[1, 4\]"):
        kernel[(1,)](np.zeros(4, "f4"), N=4)


@pytest.mark.parametrize("kernel", [sliced, narrow_pointers])
def test_a_program_that_chose_tritons_interpreter_gets_its_error(kernel: Any) -> None:
    from triton.runtime.errors import InterpreterError
    from triton.runtime.interpreter import InterpretedFunction

    with bragg.debug.check(), pytest.raises(InterpreterError) as caught:
        InterpretedFunction(kernel.fn)[(1,)](np.zeros(4, "f4"), 4)
    assert isinstance(caught.value, KernelFault)
    assert str(caught.value.__cause__) in str(caught.value)


@triton.jit
def asserts(x, STATIC: tl.constexpr):
    tl.static_assert(STATIC == 0, "no constant")
    tl.device_assert(tl.load(x) == 0, "no zero")


def test_static_assertions_are_tritons_and_others_are_no_errors_of_its_compiler() -> None:
    def error_of(launch: Callable[[], Any]) -> BaseException:
        with bragg.debug.check(), pytest.raises(KernelFault) as caught:
            launch()
        return caught.value

    from triton.compiler.errors import CompileTimeAssertionFailure

    assert isinstance(error_of(lambda: asserts[(1,)](np.zeros(1, "i4"), 1)), CompileTimeAssertionFailure)
    assert not isinstance(error_of(lambda: asserts[(1,)](np.ones(1, "i4"), 0)), triton.TritonError)


@triton.jit
def float8_of_amd(x, out):
    tl.store(out, tl.load(x).to(tl.float8e4b8, bitcast=True).to(tl.float32))


def test_a_target_has_its_own_floats_of_8_bits() -> None:
    x, out = np.full(1, 0x40, "i1"), np.zeros(1, "f4")
    for target in ("gfx942", "any"):
        with bragg.debug.check(target=target) as report:
            float8_of_amd[(1,)](x, out)
        assert (len(report), out[0]) == (0, 1.0)
    with bragg.debug.check(), pytest.raises(triton.CompilationError, match="type fp8e4b8 not supported in this arch"):
        float8_of_amd[(1,)](x, out)
    for unknown in ("h100", "sm_999", "sm_95", "gfx700", "gfxabc", "gfx999"):
        with pytest.raises(UsageError, match=f"unknown target '{unknown}'"):
            bragg.debug.check(target=unknown)
    with pytest.raises(UsageError) as refused:
        bragg.debug.check(target="gfx943")
    assert "gfx942" in (refused.value.hint or "")


@triton.jit
def narrow_descriptor(x, N: tl.constexpr):
    tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, N]).load([0, 0])


def test_the_rows_of_a_descriptors_block_have_16_bytes() -> None:
    run(narrow_descriptor, np.zeros((8, 8), "f4"), N=4)
    with bragg.debug.check(), pytest.raises(triton.CompilationError, match="at least 16 bytes in the last dimension"):
        narrow_descriptor[(1,)](np.zeros((8, 8), "f4"), N=2)


@triton.jit
def stored_to_a_constant(x: tl.const):
    tl.store(x, tl.load(x))


@triton.jit
def added_to_a_constant(x: tl.const):
    tl.atomic_add(x, 1.0)


@triton.jit
def read_of_a_constant(x: tl.const, out):
    tl.store(out, tl.load(x))


def test_constant_pointers_are_read_only() -> None:
    x, out = np.ones(1, "f4"), np.zeros(1, "f4")
    run(read_of_a_constant, x, out)
    assert out.tolist() == [1]
    for kernel in (stored_to_a_constant, added_to_a_constant):
        with pytest.raises(triton.CompilationError, match="Cannot store to a constant pointer"), bragg.debug.check():
            kernel[(1,)](x)


@triton.jit
def read_where_a_condition_chooses(x: tl.const, out):
    place = x if tl.program_id(0) == 0 else out
    tl.store(out + 1, tl.load(place))


@triton.jit
def read_of_a_choice_by_lanes(x: tl.const, out):
    i = tl.arange(0, 2)
    tl.load(tl.where(i == 0, x + i, out + i))


@pytest.mark.parametrize("kernel", [read_where_a_condition_chooses, read_of_a_choice_by_lanes])
def test_constant_pointers_are_of_another_type_than_others(kernel: Any) -> None:
    with pytest.raises(triton.CompilationError, match="constant pointer"), bragg.debug.check():
        kernel[(2,)](np.ones(2, "f4"), np.zeros(2, "f4"))


@triton.jit
def stored_where_an_if_chooses(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    if is_const if IS_CONST is None else IS_CONST:  # noqa: SIM108 - the statement is what is tested
        place = x
    else:
        place = out
    tl.store(place, 1.0)


@triton.jit
def stored_where_an_expression_chooses(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    tl.store(x if (is_const if IS_CONST is None else IS_CONST) else out, 1.0)


@triton.jit
def one_of(first, second, is_first):
    if is_first:
        return first
    else:  # noqa: RET505 - what is tested
        return second


@triton.jit
def stored_where_a_function_chooses(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    tl.store(one_of(x, out, is_const if IS_CONST is None else IS_CONST), 1.0)


@triton.jit
def one_of_early(first, second, is_first):
    if is_first:
        return first
    return second


@triton.jit
def stored_where_a_function_returns_early(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    tl.store(one_of_early(x, out, is_const if IS_CONST is None else IS_CONST), 1.0)


@triton.jit
def range_of_one_size_or_another(is_short):
    if is_short:
        return tl.arange(0, 4)
    else:  # noqa: RET505 - what is tested
        return tl.arange(0, 8)


@triton.jit
def calls_for_a_range_of_some_size(is_short):
    range_of_one_size_or_another(is_short)


def test_returned_values_have_one_shape_also_where_all_programs_go_one_way() -> None:
    for is_short in (0, 2):
        with pytest.raises(triton.CompilationError, match="Inconsistent return types"), bragg.debug.check():
            calls_for_a_range_of_some_size[(2,)](is_short)


@triton.jit
def stored_where_an_if_adds(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    if is_const if IS_CONST is None else IS_CONST:
        base = x + 0
        place = base + tl.program_id(0)
    else:
        place = tl.program_id(0) + out
    tl.store(place, 1.0)


@triton.jit
def stored_where_an_expression_adds(x: tl.const, out, is_const, IS_CONST: tl.constexpr):
    tl.store(x + 0 if (is_const if IS_CONST is None else IS_CONST) else 0 + out, 1.0)


CHOOSING = {
    stored_where_a_function_returns_early: "Inconsistent return types",
    stored_where_an_if_adds: "Mismatched type for place: constant pointer<fp32>",
    stored_where_an_expression_adds: "Ternary expression with dynamic condition has inconsistent type",
    stored_where_an_if_chooses: "Mismatched type for place: constant pointer<fp32>",
    stored_where_an_expression_chooses: "Ternary expression with dynamic condition has inconsistent type",
    stored_where_a_function_chooses: "Inconsistent return types",
}


@pytest.mark.parametrize(("kernel", "message"), CHOOSING.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_both_ways_of_a_condition_have_one_type_whichever_is_taken(kernel: Any, message: str) -> None:
    x, out = np.zeros(1, "f4"), np.zeros(1, "f4")
    for is_const in (True, False):
        with pytest.raises(triton.CompilationError, match=message), bragg.debug.check():
            kernel[(1,)](x, out, is_const, None)
    run(kernel, x, out, True, False)
    assert (x.tolist(), out.tolist()) == ([0], [1])


@triton.jit
def constant_of_each_trip(x, IS_STATIC: tl.constexpr):
    if IS_STATIC:
        for k in tl.static_range(3):
            twice: tl.constexpr = 2 * k
            tl.store(x + k, twice)
    else:
        for k in range(3):
            two: tl.constexpr = 2
            tl.store(x + k, two * k)


@triton.jit
def constant_in_the_place_of_a_parameter(x, n: tl.constexpr):
    n: tl.constexpr = n + 1
    tl.store(x, n)


def test_a_constant_is_defined_once() -> None:
    x = np.zeros(3, "f4")
    run(constant_of_each_trip, x, False)
    assert x.tolist() == [0, 2, 4]
    for kernel in (constant_of_each_trip, constant_in_the_place_of_a_parameter):
        with pytest.raises(triton.CompilationError, match="is already defined"), bragg.debug.check():
            kernel[(1,)](x, True)


@triton.jit
def part_assigned(is_reached: tl.constexpr):
    values = tl.tuple([5, 6])
    if is_reached:
        values[0] = 1


def test_an_assignment_to_a_part_is_refused_where_it_is_reached() -> None:
    run(part_assigned, False)
    with pytest.raises(triton.CompilationError, match=r"does not compile `values\[0\] = 1`"), bragg.debug.check():
        part_assigned[(1,)](True)


@triton.jit
def nothing(number):
    pass


def test_launches_are_refused_as_triton_refuses_them() -> None:
    with bragg.debug.check(), pytest.raises(OverflowError, match="no integer type"):
        nothing[(1,)](1 << 64)
    with bragg.debug.check(), pytest.raises(AssertionError, match="num_warps must be a power of 2, not 3"):
        nothing[(1,)](1, num_warps=3)
    with bragg.debug.check(), pytest.raises(TypeError, match=r"^nothing: missing a required argument: 'number'$"):
        nothing[(1,)]()
    with bragg.debug.check(), pytest.raises(KeyError, match=r"^nothing has no parameter 'nunber'$"):
        nothing[(1,)](1, nunber=2)
