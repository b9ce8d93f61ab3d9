# ruff: noqa: N803, RET503 - constants of a kernel are capitals, as in Triton's own code; a way may return nothing
"""What Triton accepts that was refused or computed otherwise."""

from __future__ import annotations

import inspect
import os
import textwrap
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.language import FUNCTIONS
from bragg.debug.switch import Launched
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


def test_a_replaced_source_keeps_its_lines() -> None:
    replaced = triton.JITFunction(template.fn)
    replaced._unsafe_update_src(replaced.src.replace("GENERATE", "missing"))
    line = inspect.getsourcelines(template.fn)[1] + 2
    with bragg.debug.check() as report, pytest.raises(KernelFault, match="'missing' is not defined"):
        replaced[(1,)](np.zeros(4, "f4"), N=4)
    assert [finding.line for finding in report] == [line]


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
def joined_along(x, out, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    both = tl.cat(tl.load(x + i), tl.load(x + i) + 10, can_reorder=False, dim=1)
    tl.store(out + tl.arange(0, N)[:, None] * 2 * N + tl.arange(0, 2 * N)[None, :], both)


@pytest.mark.skipif("dim" not in inspect.signature(tl.cat).parameters, reason="since Triton 3.7")
def test_blocks_are_joined_along_any_axis() -> None:
    out = np.zeros((2, 4), "f4")
    run(joined_along, np.arange(4, dtype="f4"), out, N=2)
    assert out.tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]]


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


@triton.jit
def doubled_where(x, condition):
    if condition:
        return x * 2


@triton.jit
def stores_what_one_way_returns(out, condition):
    tl.store(out + tl.program_id(0), doubled_where(tl.program_id(0) + 1, condition == tl.program_id(0)))


@triton.jit
def drops_what_one_way_returns(out, condition):
    value = doubled_where(3, condition > 0)
    tl.store(out, value, mask=condition > 0)


def test_a_function_that_returns_on_one_way_gives_an_undefined_value_on_others() -> None:
    out = np.zeros(2, "i4")
    for grid, condition in ((2, 1), (1, 1)):  # Some programs, or all, return none.
        with bragg.debug.check() as report:
            stores_what_one_way_returns[(grid,)](out, condition)
        told = [(one.rule, one.programs, one.message) for one in report]
        assert told == [("uninitialised-read", {0}, "a value that is undefined on this way is stored")]
    assert out[1] == 4
    run(drops_what_one_way_returns, out, 1)
    run(drops_what_one_way_returns, out, 0)
    assert out[0] == 6


def test_what_a_launch_returns_is_compiled_as_the_environment_was_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> SimpleNamespace:
        return SimpleNamespace(
            arch=os.environ.get("TRITON_OVERRIDE_ARCH"), fusion="TRITON_DEFAULT_FP_FUSION" in os.environ
        )

    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "sm80")
    launched = Launched(compiled)
    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "sm70")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    assert (launched.arch, launched.fusion) == ("sm80", False)
    assert [os.environ[name] for name in ("TRITON_OVERRIDE_ARCH", "TRITON_DEFAULT_FP_FUSION")] == ["sm70", "0"]
