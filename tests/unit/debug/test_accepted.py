# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""What Triton accepts that was refused or computed otherwise, and that its refusals are Triton's own exceptions."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.language import FUNCTIONS
from bragg.errors import UsageError


def run(kernel: Any, *arguments: Any, grid: int = 1, **named: Any) -> Any:
    with bragg.debug.check() as report:
        result = kernel[(grid,)](*arguments, **named)
    assert not len(report), report.lines()
    return result


@triton.jit
def scalars(out, x: tl.float64, n: tl.int64, small: tl.uint8, half: tl.float16):
    tl.static_assert(half.dtype == tl.float16)
    tl.static_assert(small.dtype == tl.uint8)
    tl.store(out, x)
    tl.store(out + 1, (n * 1000000).to(tl.float64))
    tl.store(out + 2, small)
    tl.store(out + 3, half)


def test_numbers_have_the_type_of_their_annotation() -> None:
    out = np.zeros(4, "f8")
    run(scalars, out, 0.1, 1000000, -1, 0.1)
    assert out.tolist() == [0.1, 1e12, 255.0, float(np.float16(0.1))]
    with bragg.debug.check(), pytest.raises(UsageError, match="n is 9223372036854775808, out of the range of int64"):
        scalars[(1,)](out, 0.1, 1 << 63, 1, 0.1)


@triton.jit
def shifted(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) >> tl.load(y + i))


def test_the_left_sides_own_sign_decides_how_a_shift_fills() -> None:
    x, y, out = np.array([-342, 342], "i2"), np.array([2, 2], "u2"), np.zeros(2, "i2")
    run(shifted, x, y, out, N=2)
    assert out.tolist() == [-86, 85]


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def by_name(x, out, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), tl.associative_scan(input=values, axis=0, combine_fn=larger))
    tl.store(out + N, tl.reduce(values, 0, combine_fn=larger))
    tl.store(out + N + 1, tl.sum(tl.where(condition=values > 1, x=values, y=tl.exp(x=values * 0))))


def test_functions_take_their_arguments_by_tritons_names() -> None:
    out = np.zeros(6, "f4")
    run(by_name, np.array([1, 3, 2, 4], "f4"), out, N=4)
    assert out.tolist() == [1, 3, 3, 4, 4, 10]


def test_every_function_has_tritons_parameter_names() -> None:
    for name, function in FUNCTIONS.items():
        tritons = getattr(tl, name, None)
        names = _parameters(tritons)
        if names is None or function is None:
            continue
        own = inspect.signature(getattr(function, "like", function)).parameters
        names_taken = getattr(function, "names", ())
        takes_all = any(one.kind is one.VAR_KEYWORD for one in own.values())
        missing = [one for one in names if one not in own and one not in names_taken]
        assert takes_all or not missing, (name, missing)


def _parameters(function: Any) -> list[str] | None:
    if not callable(function) or isinstance(function, type):
        return None
    try:
        given = inspect.signature(getattr(function, "fn", function)).parameters.values()
    except (TypeError, ValueError):
        return None
    fixed = [one for one in given if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return [one.name for one in fixed if one.name not in ("_semantic", "_generator", "_builder")]


@triton.jit
def raises_in_dead_branch(out, MODE: tl.constexpr):
    if MODE == "a":
        tl.store(out, 1.0)
    else:
        raise ValueError("unknown mode")


def test_a_raise_that_is_not_compiled_does_not_matter() -> None:
    out = np.zeros(1, "f4")
    run(raises_in_dead_branch, out, MODE="a")
    assert out[0] == 1
    with bragg.debug.check(), pytest.raises(KernelFault, match="Triton does not compile `raise`"):
        raises_in_dead_branch[(1,)](out, MODE="b")


@triton.jit
def one_element_condition(x, out):
    if tl.load(x + tl.arange(0, 1)) > 0:
        tl.store(out + tl.program_id(0), 42)


def test_a_block_of_one_element_is_a_condition() -> None:
    out = np.zeros(3, "i4")
    run(one_element_condition, np.ones(1, "i4"), out, grid=3)
    assert out.tolist() == [42, 42, 42]


class Pair(NamedTuple):
    first: Any
    second: Any


class Shape(tuple[int, ...]):
    """As torch.Size: a tuple that is made of one sequence."""


@triton.jit
def tuples(out, shape, pair):
    tl.store(out, shape[0] * 10 + shape[1])
    tl.store(out + 1, pair.first + pair.second)


def test_tuples_of_all_kinds_are_arguments() -> None:
    out = np.zeros(2, "i4")
    run(tuples, out, Shape((2, 3)), Pair(4, 5))
    assert out.tolist() == [23, 9]


@triton.jit
def template(out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), GENERATE)  # noqa: F821


def test_a_replaced_source_is_executed() -> None:
    out = np.zeros(4, "f4")
    for text, expected in (("2.0", [2, 2, 2, 2]), ("tl.arange(0, N).to(tl.float32)", [0, 1, 2, 3])):
        replaced = triton.JITFunction(template.fn)
        replaced._unsafe_update_src(replaced.src.replace("GENERATE", text))
        run(replaced, out, N=4)
        assert out.tolist() == expected


EXECUTED = """
def kernel(x, out, n, N: tl.constexpr):
    total = tl.zeros([N], tl.float32)
    for start in range(0, tl.cdiv(n, N)):
        total += tl.load(x + start * N + tl.arange(0, N))
    if tl.program_id(0) > 0:
        tl.store(out + tl.program_id(0) * N + tl.arange(0, N), total)
"""


def test_a_function_without_a_source_is_executed_program_by_program() -> None:
    from triton.runtime.interpreter import InterpretedFunction

    names: dict[str, Any] = {}
    exec(EXECUTED, {"tl": tl}, names)
    out = np.zeros(12, "f4")
    run(InterpretedFunction(names["kernel"]), np.arange(8, dtype="f4"), out, 8, N=4, grid=3)
    assert out.tolist() == [0, 0, 0, 0, 4, 6, 8, 10, 4, 6, 8, 10]


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
def only_interpreted(x, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i).to(tl.float8e4b8).to(tl.float32)
    tl.store(x + i, tl.dot(a, a))


def test_a_program_that_chose_tritons_interpreter_has_all_types_and_sizes() -> None:
    from triton.runtime.interpreter import InterpretedFunction

    x = np.ones((4, 4), "f4")
    with bragg.debug.check() as report:
        InterpretedFunction(only_interpreted.fn)[(1,)](x, 4)
    assert (len(report), x[0, 0]) == (0, 4.0)


def test_shapes_equal_lists_in_kernels_without_a_text() -> None:
    names: dict[str, Any] = {"tl": tl}
    text = """
        def kernel(out, N: tl.constexpr):
            tl.static_assert(tl.full((N,), 0, tl.int32).shape == [N])
            tl.static_assert(tl.full((), 0, tl.int32).shape == [])
            tl.static_assert(tl.full((N,), 0, tl.int32).shape != [N, 1])
            tl.store(out, N)
    """
    exec(textwrap.dedent(text), names)
    from triton.runtime.interpreter import InterpretedFunction

    out = np.zeros(1, "i4")
    run(InterpretedFunction(names["kernel"]), out, 8)
    assert out[0] == 8


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
def joined_along(x, out, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    both = tl.cat(tl.load(x + i), tl.load(x + i) + 10, can_reorder=False, dim=1)
    tl.store(out + tl.arange(0, N)[:, None] * 2 * N + tl.arange(0, 2 * N)[None, :], both)


@pytest.mark.skipif("dim" not in inspect.signature(tl.cat).parameters, reason="since Triton 3.7")
def test_blocks_are_joined_along_any_axis() -> None:
    out = np.zeros((2, 4), "f4")
    run(joined_along, np.arange(4, dtype="f4"), out, N=2)
    assert out.tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]]


def test_a_replaced_source_keeps_its_lines() -> None:
    replaced = triton.JITFunction(template.fn)
    replaced._unsafe_update_src(replaced.src.replace("GENERATE", "missing"))
    line = inspect.getsourcelines(template.fn)[1] + 2
    with bragg.debug.check() as report, pytest.raises(KernelFault, match="'missing' is not defined"):
        replaced[(1,)](np.zeros(4, "f4"), N=4)
    assert [finding.line for finding in report] == [line]


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


CHOOSING = {
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


@triton.jit
def absolute(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.abs(tl.load(x + i)))


def test_absolute_values_of_8_bits_are_not_rounded() -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(torch.int8)
    out = torch.zeros_like(codes)
    wrapped = [triton.reinterpret(one, tl.float8e4b15) for one in (codes, out)]
    with bragg.debug.check(target="any"):
        absolute[(1,)](*wrapped, N=256)
    assert (out.view(torch.uint8) == (codes.view(torch.uint8) & 0x7F)).all()


@triton.jit
def lowest(dtype: tl.constexpr):
    kind = dtype.value
    return -1.0 if kind.is_floating() else 0


@triton.jit
def copied_as_the_block_pointer_says(x, out, N: tl.constexpr):
    source = tl.make_block_ptr(x, (N,), (1,), (0,), (N,), (0,))
    to = tl.make_block_ptr(out, (N,), (1,), (0,), (N,), (0,))
    tl.store(to, (tl.load(source) + lowest(x.dtype.element_ty)).to(to.type.element_ty))


def test_types_are_taken_from_block_pointers_and_from_constants() -> None:
    out = np.zeros(4, "i4")
    run(copied_as_the_block_pointer_says, np.arange(4, dtype="f4") + 0.5, out, N=4)
    assert out.tolist() == [0, 0, 1, 2]


@tl.constexpr
def half_of(bits: tl.constexpr) -> int:
    return (bits.value if isinstance(bits, tl.constexpr) else bits) // 2


@triton.jit
def fills_by_a_constant_function(out, N: tl.constexpr):
    half: tl.constexpr = half_of(N)
    tl.store(out + tl.arange(0, half), 1)


def test_a_function_that_is_a_constant_gets_constants() -> None:
    out = np.zeros(8, "i4")
    run(fills_by_a_constant_function, out, N=8)
    assert out.tolist() == [1] * 4 + [0] * 4
