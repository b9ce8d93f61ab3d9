"""Planted promises that do not hold, and code that a GPU runs differently or that Triton does not compile."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, floats, integers


@bug("broken-promise", floats(1024), programs={1, 2, 3}, B=100)
@triton.jit
def not_a_multiple(x, B: tl.constexpr):
    start = tl.multiple_of(tl.program_id(0) * B, 16)  # bug
    tl.store(x + start + tl.arange(0, 16), 1.0)


@bug("broken-promise", floats(1024), programs=range(4))
@triton.jit
def not_contiguous(x):
    offsets = tl.max_contiguous(tl.arange(0, 64) * 2, 64)  # bug
    tl.store(x + tl.program_id(0) * 128 + offsets, 1.0)


@bug("broken-promise", floats(1024), floats(128), 40, programs={1, 2, 3})
@triton.jit
def not_contiguous_where_it_wraps(x, out, n):
    place = tl.program_id(0) * 32 + tl.arange(0, 32)
    offsets = tl.max_contiguous(place % n, 32)  # bug
    tl.store(out + place, tl.load(x + offsets))


@bug("broken-promise", floats(1024), floats(4), programs=range(4))
@triton.jit
def not_constant(x, out):
    groups = tl.max_constancy(tl.arange(0, 64) // 3, 4)  # bug
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + groups), 0))


@bug("broken-promise", floats(1024), floats(256), programs={1, 3})
@triton.jit
def block_that_starts_in_between(x, out):
    place = tl.program_id(0) * 36 + tl.arange(0, 64)
    values = tl.load(x + tl.multiple_of(place, 8))  # bug
    tl.store(out + tl.program_id(0) * 64 + tl.arange(0, 64), values)


@bug("broken-promise", floats(64, 50), 50, floats(64), programs=range(4))
@triton.jit
def stride_that_is_no_multiple(x, stride, out):
    stride = tl.multiple_of(stride, 16)  # bug
    row = tl.program_id(0)
    tl.store(out + row, tl.load(x + row * stride))


@bug("broken-promise", integers(4), 4, programs=range(4))
@triton.jit
def assumption_that_fails(x, n):
    tl.assume(n > 10)  # bug
    tl.store(x + tl.program_id(0), n)


@bug("broken-promise", floats(4), programs={3})
@triton.jit
def assumption_that_fails_in_one_program(x):
    tl.assume(tl.program_id(0) < 3)  # bug
    tl.store(x + tl.program_id(0), 0.0)


@bug("broken-promise", lambda: np.ones(1024, "u1")[1:65].view("f4"), floats(16), tensor="x", programs={0}, grid=(1,))
@triton.jit
def address_astray(x, out):
    values = tl.load(x + tl.arange(0, 16))  # bug
    tl.store(out + tl.arange(0, 16), values)


@bug("portability", floats(32, 17), 32, 17, grid=(1,), programs={0})
@triton.jit
def descriptor_of_rows_that_are_not_aligned(x, rows, columns):
    window = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [16, 16])  # bug
    window.store([0, 0], window.load([16, 0]))


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def and_between_blocks(x):
    i = tl.arange(0, 64)
    tl.store(x + i, 0.0, mask=(i > 2) and (i < 10))  # bug


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def or_between_blocks(x):
    i = tl.arange(0, 64)
    mask = (i < 2) or (i > 10)  # bug
    tl.store(x + i, 0.0, mask=mask)


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def loop_over_a_list(x):
    for start in [0, 32]:  # bug
        tl.store(x + start + tl.arange(0, 32), 1.0)


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def product_over_8_elements(x):
    i = tl.arange(0, 8)
    place = x + i[:, None] * 8 + i[None, :]
    values = tl.load(place)
    product = tl.dot(values, values)  # bug
    tl.store(place, product)


EPSILON = 1e-6
LOG2_E: tl.constexpr = 1.4426950408889634


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def global_variable(x):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    tl.store(x + i, value / (tl.sum(value, 0) + EPSILON))  # bug


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def global_that_is_only_annotated(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.exp2(tl.load(x + i) * LOG2_E))  # bug


def gelu(x):
    return x * 0.5 * (1 + tl.erf(x * 0.7071))


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def helper_without_a_decorator(x):
    i = tl.arange(0, 64)
    tl.store(x + i, gelu(tl.load(x + i)))  # bug


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def function_of_numpy(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) * np.sqrt(64.0))  # bug


@bug("portability", floats(64), grid=(1,), programs={0})
@triton.jit
def function_that_only_python_has(x):
    i = tl.arange(0, 64)
    tl.store(x + i, abs(tl.load(x + i)))  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def function_of_math_on_a_block(x):
    i = tl.arange(0, 64)
    tl.store(x + i, math.exp(tl.load(x + i)))  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def name_that_nobody_defines(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) * scale)  # noqa: F821  # bug


@triton.jit
def halved(value):
    return value / 2


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def call_with_an_argument_too_many(x):
    i = tl.arange(0, 64)
    tl.store(x + i, halved(tl.load(x + i), 2))  # bug


@bug("kernel-fault", floats(64), 60, grid=(1,))
@triton.jit
def option_that_a_load_does_not_have(x, n):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i, mask=i < n, default=0))  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def hint_that_triton_does_not_know(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i, eviction_policy="evict"))  # bug


@bug("portability", floats(64), 3, grid=(1,), programs={0})
@triton.jit
def negation_of_a_number(x, is_causal):
    if not is_causal:  # bug
        tl.store(x, 1.0)


@bug("portability", lambda: np.array([3, 31, 32, 40], "i4"), integers(4), programs={2, 3})
@triton.jit
def shift_by_all_bits(amounts, out):
    amount = tl.load(amounts + tl.program_id(0))
    bit = 1 << amount  # bug
    tl.store(out + tl.program_id(0), bit)


@bug("kernel-fault", floats(64), 3, grid=(1,))
@triton.jit
def type_changes_in_an_if(x, n):
    total = 0
    if n > 2:  # bug
        total = tl.load(x)
    tl.store(x, total + 1.0)


@bug("kernel-fault", floats(64), 3, grid=(1,))
@triton.jit
def name_of_one_branch(x, n):
    if n > 2:
        scale = tl.load(x)
    tl.store(x, scale * 2)  # bug


@bug("portability", lambda: np.ones(64, "u1"), grid=(1,), programs={0})
@triton.jit
def arithmetic_of_fp8(x):
    i = tl.arange(0, 64)
    value = tl.load(x + i).to(tl.float8e5, bitcast=True)
    doubled = value + value  # bug
    tl.store(x + i, doubled.to(tl.uint8, bitcast=True))


@bug("portability", floats(64), programs=range(4))
@triton.jit
def sum_of_a_single_value(x):
    value = tl.load(x + tl.program_id(0))
    tl.store(x + tl.program_id(0), tl.sum(value))  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def block_stored_at_a_single_pointer(x):
    i = tl.arange(0, 64)
    tl.store(x, tl.load(x + i) * 2)  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def other_for_lanes_that_are_all_on(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i, other=0.0))  # bug


@bug("kernel-fault", lambda: np.zeros(4, "i8"))
@triton.jit
def lock_of_64_bits_taken_by_a_number_of_32(lock):
    while tl.atomic_cas(lock, 0, 1) == 1:  # bug
        pass
    tl.atomic_xchg(lock, 0)


@bug("kernel-fault", lambda: np.zeros(4, "i1"))
@triton.jit
def counter_of_8_bits(counter):
    tl.atomic_add(counter, 1)  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def if_on_a_block(x):
    if tl.load(x + tl.arange(0, 64)) > 0:  # bug
        tl.store(x, 1.0)


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def type_changes_in_a_loop(x):
    total = 0
    for i in range(4):
        total += tl.load(x + i)  # bug
    tl.store(x, total)


@bug("kernel-fault", floats(64))
@triton.jit
def assertion_that_fails(x):
    tl.device_assert(tl.program_id(0) < 3, "too many programs")  # bug


@bug("kernel-fault", floats(64), 64, grid=(1,))
@triton.jit
def range_that_is_no_constant(x, n):
    tl.load(x + tl.arange(0, n))  # bug


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def block_of_48(x):
    tl.load(x + tl.arange(0, 48))  # bug


@bug("kernel-fault", integers(4))
@triton.jit
def lock_that_nobody_releases(lock):
    while tl.atomic_cas(lock, 0, 1) == 1:  # bug
        pass


@bug("kernel-fault", integers(4), grid=(2,))
@triton.jit
def programs_that_wait_for_each_other(flags):
    pid = tl.program_id(0)
    while tl.load(flags + 1 - pid, volatile=True) == 0:  # bug
        pass
    tl.atomic_xchg(flags + pid, 1)
