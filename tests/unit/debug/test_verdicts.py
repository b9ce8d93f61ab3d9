# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Launches that are clean whatever their tensors hold, and the line that stands in the way for others."""

from __future__ import annotations

import inspect
import linecache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.flow.jitted import python_function
from bragg.debug.flow.program import Program


@triton.jit
def clamped(index, n):
    return tl.minimum(tl.maximum(index, 0), n - 1)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def larger_by_a_branch(a, b):
    return a if a > b else b


@triton.jit
def stored_twice(x, out, i):
    value = tl.load(x + i)
    tl.store(out + i, value * 2)
    return value


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = x + tl.program_id(0) * n
    value = tl.load(row + i, mask=i < n, other=-float("inf"))
    weight = tl.exp(value - tl.max(value, 0))
    total = tl.reduce(weight, 0, larger)
    tl.store(out + tl.program_id(0) * n + i, weight / total, mask=i < value.shape[0] - B + n)


@triton.jit
def called(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = stored_twice(x, out, i)
    tl.store(out + i, tl.where(value > 0, value, 0.0))


@triton.jit
def turned(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.gather(tl.load(x + i), (i + 1) % B, axis=0))


@triton.jit
def added_by_a_descriptor(x, out, n, B: tl.constexpr):
    block = tl.make_tensor_descriptor(out, [n], [1], [B])
    block.atomic_add([0], tl.load(x + tl.arange(0, B)))


@triton.jit
def shuffled(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(out + i, tl.gather(i, index=value.to(tl.int32), axis=0))  # the address or mask


@triton.jit
def gathered(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    index = tl.load(out + i).to(tl.int32)
    tl.store(out + i, tl.load(x + clamped(index, n)))  # the address or mask


@triton.jit
def carried(x, out, n, B: tl.constexpr):
    i, at = tl.arange(0, B), 0
    for _ in range(2):
        tl.store(out + i + at, 1.0)  # the address or mask
        at = tl.load(x).to(tl.int32)


@triton.jit
def masked(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 1.0, mask=tl.load(x + i) > 0)  # the address or mask


@triton.jit
def branched(x, out, n, B: tl.constexpr):
    if tl.load(x) > 0:  # the condition
        tl.store(out, 1.0)


@triton.jit
def counted(x, out, n, B: tl.constexpr):
    for _ in range(tl.load(x).to(tl.int32)):  # the loop
        tl.store(out, 1.0)


@triton.jit
def in_a_helper(x, out, n, B: tl.constexpr):
    i = tl.load(x + tl.arange(0, B)).to(tl.int32)
    stored_twice(x, out, i)


@triton.jit
def halved_by_assembly(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    half = tl.inline_asm_elementwise("mul.f32 $0, $1, 0f3F000000;", "=f,f", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(out + i, half)


@triton.jit
def loaded_by_assembly(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.inline_asm_elementwise("ld.global.f32 $0, [$1];", "=f,l", [x + i], tl.float32, True, 1)  # inline_asm
    tl.store(out + i, value)


@triton.jit
def in_what_combines(x, out, n, B: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, B)), 0, larger_by_a_branch))


@triton.jit
def largest_of(dtype: tl.constexpr):
    kind = dtype.value
    if kind.is_floating():
        largest: tl.constexpr = float("inf")
    else:
        largest: tl.constexpr = 2 ** (kind.int_bitwidth - 1) - 1
    return largest


@triton.jit
def bounded_by_its_type(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.minimum(tl.load(x + i), largest_of(x.type.element_ty)))


def place_of(kernel: Any) -> Any:
    return dependence_of(Program.of(python_function(kernel), kernel))


def marked(kernel: Any) -> tuple[str, int]:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next((line.split("  # ")[1].strip(), first + k) for k, line in enumerate(lines) if "  # " in line)


@pytest.mark.parametrize(
    "kernel", [softmax, called, turned, halved_by_assembly, bounded_by_its_type, added_by_a_descriptor]
)
def test_a_launch_is_proven_where_nothing_but_values_depends_on_data(kernel: Any) -> None:
    assert place_of(kernel) is None
    with bragg.debug.check() as report:
        kernel[(1,)](np.ones(8, "f4"), np.ones(8, "f4"), 8, B=8)
    assert [(one["verdict"], one["launches"]) for one in report.to_json()["verdicts"]] == [("proven", 1)]
    name = kernel.fn.__name__
    assert report.lines()[-2] == (
        f"no access outside of a tensor and no race, proven whatever the data holds (1 launch of {name}); whether "
        "results are right was not checked"
    )


def factory() -> Any:
    """A kernel whose module is a name of the function around it, so that nobody knows what its decorators are."""
    import triton as compiler

    @compiler.autotune(configs=[compiler.Config({"B": 8})], key=["n"])
    @compiler.jit
    def copied(x, out, n, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out + i, tl.load(x + i))

    return copied


def test_decorators_are_no_part_of_a_kernel() -> None:
    with bragg.debug.check() as report:
        factory()[(1,)](np.ones(8, "f4"), np.ones(8, "f4"), 8)
    assert {one["verdict"] for one in report.to_json()["verdicts"]} == {"proven"}


@pytest.mark.parametrize("kernel", [gathered, shuffled, carried, masked, branched, counted])
def test_the_statement_that_breaks_the_proof_is_named(kernel: Any) -> None:
    place = place_of(kernel)
    what, line = marked(kernel)
    assert (place.what, place.line) == (f"{what} depends on data", line)


def test_assembly_that_accesses_memory_breaks_a_proof() -> None:
    place = place_of(loaded_by_assembly)
    assert (place.what, place.line) == ("inline_asm_elementwise is not followed", marked(loaded_by_assembly)[1])


def test_functions_that_are_called_are_followed() -> None:
    assert place_of(in_a_helper).line == stored_twice.starting_line_number + 2
    assert place_of(in_what_combines).line == larger_by_a_branch.starting_line_number + 2


@triton.jit
def chosen(x, i, MODE: tl.constexpr):
    if MODE & 2:
        return tl.load(x + tl.load(x + i).to(tl.int32))
    return tl.load(x + i)


@triton.jit
def with_options(x, index, out, n, SCALED: tl.constexpr, MODE: tl.constexpr):
    i = tl.arange(0, 16)
    both: tl.constexpr = SCALED and MODE == 3
    if index is not None and SCALED:
        i = tl.load(index + i)
    value = chosen(x, i, MODE) if not both else tl.load(x + tl.load(index + i))
    if n > 4 and not SCALED and MODE > 3:
        n = tl.load(x).to(tl.int32)
    tl.store(out + tl.arange(0, 16), value + x.dtype.is_floating(), mask=tl.arange(0, 16) < n)


@pytest.mark.parametrize(
    ("index", "scaled", "mode", "code"),
    [
        (None, False, 1, ""),
        (None, True, 1, ""),
        (None, False, 2, "return tl.load(x + tl.load(x + i).to(tl.int32))"),
        (np.zeros(16, "i4"), False, 1, ""),
        (np.zeros(16, "i4"), True, 1, "return tl.load(x + i)"),
        (np.zeros(16, "i4"), True, 3, "i = tl.load(index + i)"),
        (None, False, 4, "if n > 4 and not SCALED and MODE > 3:"),
    ],
)
def test_branches_that_constants_rule_out_break_no_proof(index: Any, scaled: bool, mode: int, code: str) -> None:
    with bragg.debug.check() as report:
        with_options[(1,)](np.zeros(32, "f4"), index, np.zeros(16, "f4"), 16, scaled, mode)
    (found,) = report.verdicts.counts
    assert linecache.getline(found.file, found.line).strip() == code
    assert found.verdict == ("clean" if code else "proven")


@triton.jit
def rows_of_eight(x, out, stride, ONE: tl.constexpr):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    tl.store(out + i * stride + j, 1.0 if ONE else tl.load(x + i * 8 + j))


@pytest.mark.parametrize(
    ("stride", "one", "because"),
    [(8, False, ""), (6, True, ""), (6, False, "lanes of one program write one element, here the same value")],
)
def test_equal_values_of_lanes_that_meet_prove_nothing_of_others(stride: int, one: bool, because: str) -> None:
    with bragg.debug.check() as report:
        rows_of_eight[(1,)](np.ones(32, "f4"), np.zeros(32, "f4"), stride, one)
    (found,) = report.verdicts.counts
    assert (found.verdict, found.because) == ("clean" if because else "proven", because)


@triton.jit
def mixed(total, x):
    tl.atomic_add(total, tl.load(x + tl.program_id(0)))
    tl.load(total + 1)


@triton.jit
def summed(total, x):
    tl.atomic_add(total, tl.load(x + tl.program_id(0)))


def verdict(kernel: Any, programs: int = 4, **options: Any) -> tuple[str, str]:
    with bragg.debug.check(**options) as report:
        kernel[(programs,)](np.zeros(2, "f4"), np.ones(4, "f4"))
    (one,) = report.to_json()["verdicts"]
    return one["verdict"], one["because"]


def test_a_proof_needs_what_sees_every_access_and_atomics_by_themselves() -> None:
    assert verdict(summed) == ("proven", "")
    for programs in (4, 1):
        assert verdict(mixed, programs) == ("clean", "atomics and other accesses share a tensor")
    assert verdict(summed, without=["data-race"]) == ("clean", "data-race did not watch")


@triton.jit
def beyond(x, out):
    tl.store(x + tl.program_id(0), 1.0)


def test_a_finding_is_a_verdict_too() -> None:
    assert verdict(beyond) == ("finding", "")
