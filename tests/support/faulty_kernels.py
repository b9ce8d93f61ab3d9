"""Triton kernels with one planted bug each: name of the function, rule that must find it, how to launch it."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

__all__ = ["CASES"]

CASES: dict[str, tuple[str, Callable[[], Any]]] = {}


def bug(rule: str, *arguments: Callable[[], Any] | Any, grid: Any = (4,), **constants: Any) -> Callable[[Any], Any]:
    """Enter a kernel into the table; callables among the arguments make fresh arrays."""

    def enter(kernel: Any) -> Any:
        def launch() -> None:
            kernel[grid](*(argument() if callable(argument) else argument for argument in arguments), **constants)

        CASES[kernel.fn.__name__] = (rule, launch)
        return kernel

    return enter


def floats(*shape: int) -> Callable[[], Any]:
    return lambda: np.ones(shape, "f4")


def integers(count: int, value: int = 0) -> Callable[[], Any]:
    return lambda: np.full(count, value, "i4")


def view(rows: int, columns: int, width: int) -> Callable[[], Any]:
    return lambda: np.ones((rows, width), "f4")[:, :columns]


@bug("out-of-bounds", floats(1000), 1000, B=256)
@triton.jit
def no_mask_at_the_end(x, n, B: tl.constexpr):
    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 0.0)


@bug("out-of-bounds", floats(1000), floats(1024), 1000, B=256)
@triton.jit
def mask_one_too_far(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets <= n, other=0.0))


@bug("out-of-bounds", floats(1024), floats(1024), B=256)
@triton.jit
def starts_before_the_tensor(x, out, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offsets, tl.load(x + offsets - 1))


@bug("out-of-bounds", floats(64), B=64)
@triton.jit
def only_in_one_branch(x, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 3:
        tl.load(x + pid * B + tl.arange(0, B))


@bug("out-of-bounds", integers(4, 100), floats(64))
@triton.jit
def behind_a_loaded_condition(flags, x):
    if tl.load(flags + tl.program_id(0)) > 50:
        tl.load(x + 64 + tl.program_id(0))


@bug("out-of-bounds", lambda: np.array([0, 3, 64, 1], "i4"), floats(64))
@triton.jit
def one_bad_index(index, x):
    tl.load(x + tl.load(index + tl.program_id(0)))


@bug("out-of-bounds", integers(10))
@triton.jit
def atomic_beyond_the_end(counts):
    tl.atomic_add(counts + tl.program_id(0) * 4, 1)


@bug("out-of-bounds", integers(2))
@triton.jit
def compare_and_swap_beyond_the_end(lock):
    tl.atomic_cas(lock + tl.program_id(0), 0, 1)


@bug("out-of-bounds", view(8, 50, 64), floats(8, 64), 64, grid=(8,), B=64)
@triton.jit
def spills_into_the_rest_of_the_row(x, out, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.program_id(0)
    tl.store(out + row * stride + columns, tl.load(x + row * stride + columns, mask=columns < 51, other=0.0))


@bug("out-of-bounds", floats(50, 50), 50, 50, grid=(4, 4), B=16)
@triton.jit
def block_pointer_without_boundary_check(x, M, N, B: tl.constexpr):
    place = (tl.program_id(0) * B, tl.program_id(1) * B)
    tl.load(tl.make_block_ptr(x, (M, N), (N, 1), place, (B, B), (1, 0)))


@bug("out-of-bounds", floats(100), 3, B=64)
@triton.jit
def one_trip_too_many(x, trips, B: tl.constexpr):
    for i in range(trips):
        tl.load(x + i * B + tl.arange(0, B), mask=i * B + tl.arange(0, B) < 128, other=0.0)


@bug("out-of-bounds", floats(32, 32), 32, grid=(2, 2), B=16)
@triton.jit
def rows_and_columns_with_one_wrong_stride(x, n, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    tl.load(x + rows[:, None] * (n + 1) + columns[None, :])


@bug("data-race", floats(1024), 1000, B=256)
@triton.jit
def blocks_that_overlap(x, n, B: tl.constexpr):
    offsets = tl.program_id(0) * (B - 1) + tl.arange(0, B)
    tl.store(x + offsets, offsets.to(tl.float32) * tl.program_id(0))


@bug("data-race", floats(1024), 1024, B=256)
@triton.jit
def shift_in_place(x, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets + 1, mask=offsets + 1 < n, other=0.0)
    tl.store(x + offsets, values)


@bug("data-race", floats(1), floats(4))
@triton.jit
def sum_without_atomic(total, x):
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))


@bug("data-race", integers(1), integers(4))
@triton.jit
def plain_read_of_a_counter(counter, out):
    tl.atomic_add(counter, 1)
    tl.store(out + tl.program_id(0), tl.load(counter))


@bug("data-race", floats(8, 64), 63, grid=(8,), B=64)
@triton.jit
def wrong_row_stride(x, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = x + tl.program_id(0) * stride
    tl.store(row + columns, tl.program_id(0).to(tl.float32) + columns)


@bug("data-race", integers(5), floats(64), grid=(64,))
@triton.jit
def count_relaxed_then_read(counter, part):
    pid = tl.program_id(0)
    tl.store(part + pid, pid.to(tl.float32))
    if tl.atomic_add(counter, 1, sem="relaxed") == 63:
        tl.store(part, tl.sum(tl.load(part + tl.arange(0, 64)), 0))


@bug("uninitialised-read", floats(1000), floats(1024), 1000, B=256)
@triton.jit
def stores_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n))


@bug("uninitialised-read", floats(1000), floats(4), 1000, B=256)
@triton.jit
def sums_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + offsets, mask=offsets < n), 0))


@bug("uninitialised-read", floats(1000), floats(1), 1000, B=256)
@triton.jit
def adds_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + offsets, mask=offsets < n), 0))


@bug("uninitialised-read", floats(30, 32), floats(32, 16), floats(32, 16), grid=(1,))
@triton.jit
def multiplies_rows_that_were_not_loaded(a, b, out):
    rows = tl.arange(0, 32)
    k = tl.arange(0, 32)
    n = tl.arange(0, 16)
    left = tl.load(a + rows[:, None] * 32 + k[None, :], mask=rows[:, None] < 30)
    right = tl.load(b + k[:, None] * 16 + n[None, :])
    tl.store(out + rows[:, None] * 16 + n[None, :], tl.dot(left, right))


@bug("uninitialised-read", lambda: np.empty(1024, "f4"), floats(1024), B=256)
@triton.jit
def reads_an_empty_tensor(x, out, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offsets, tl.load(x + offsets))


@bug("uninitialised-read", floats(1000), floats(4), 1000, B=256)
@triton.jit
def decides_by_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    if tl.max(tl.load(x + offsets, mask=offsets < n), 0) > 0:
        tl.store(out + tl.program_id(0), 1.0)


@bug("integer-overflow", floats(64), 1 << 30)
@triton.jit
def row_times_stride_in_32_bits(x, stride):
    offset = tl.program_id(0) * stride
    tl.load(x + offset, mask=offset == 0, other=0.0)


@bug("integer-overflow", floats(64), 2_000_000_000)
@triton.jit
def sum_of_offsets_in_32_bits(x, base):
    offsets = base + tl.program_id(0) * 100_000_000 + tl.arange(0, 16)
    tl.load(x + offsets, mask=offsets < 64, other=0.0)


@bug("division-by-zero", integers(4), integers(4))
@triton.jit
def divides_by_a_loaded_zero(x, out):
    tl.store(out + tl.program_id(0), 10 // tl.load(x + tl.program_id(0)))


@bug("division-by-zero", integers(4), 4)
@triton.jit
def remainder_of_its_own_number(out, n):
    tl.store(out + tl.program_id(0), n % tl.program_id(0))


@bug("broken-promise", floats(1024), B=100)
@triton.jit
def not_a_multiple(x, B: tl.constexpr):
    start = tl.multiple_of(tl.program_id(0) * B, 16)
    tl.store(x + start + tl.arange(0, 16), 1.0)


@bug("broken-promise", floats(1024))
@triton.jit
def not_contiguous(x):
    offsets = tl.max_contiguous(tl.arange(0, 64) * 2, 64)
    tl.store(x + tl.program_id(0) * 128 + offsets, 1.0)


@bug("broken-promise", integers(4), 4)
@triton.jit
def assumption_that_fails(x, n):
    tl.assume(n > 10)
    tl.store(x + tl.program_id(0), n)


@bug("broken-promise", lambda: np.ones(1024, "u1")[1:65].view("f4"), floats(16), grid=(1,))
@triton.jit
def address_astray(x, out):
    tl.store(out + tl.arange(0, 16), tl.load(x + tl.arange(0, 16)))


@bug("portability", floats(64), grid=(1,))
@triton.jit
def and_between_blocks(x):
    i = tl.arange(0, 64)
    tl.store(x + i, 0.0, mask=(i > 2) and (i < 10))


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def if_on_a_block(x):
    if tl.load(x + tl.arange(0, 64)) > 0:
        tl.store(x, 1.0)


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def type_changes_in_a_loop(x):
    total = 0
    for i in range(4):
        total += tl.load(x + i)
    tl.store(x, total)


@bug("kernel-fault", floats(64))
@triton.jit
def assertion_that_fails(x):
    tl.device_assert(tl.program_id(0) < 3, "too many programs")


@bug("kernel-fault", floats(64), 64, grid=(1,))
@triton.jit
def range_that_is_no_constant(x, n):
    tl.load(x + tl.arange(0, n))


@bug("kernel-fault", floats(64), grid=(1,))
@triton.jit
def block_of_48(x):
    tl.load(x + tl.arange(0, 48))


@bug("nan-origin", floats(64), grid=(1,))
@triton.jit
def infinity_minus_itself(x):
    i = tl.arange(0, 64)
    values = tl.exp(tl.load(x + i) * 100)
    tl.store(x + i, values - values)


@bug("nan-origin", floats(64), grid=(1,))
@triton.jit
def square_root_of_a_negative_number(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.sqrt(tl.load(x + i) - 2))


@bug("uncoalesced", floats(64, 64), grid=(1,))
@triton.jit
def reads_down_a_column(x):
    rows = tl.arange(0, 64)
    tl.store(x + rows * 64, tl.load(x + rows * 64) * 2)


@bug("atomic-order", floats(1))
@triton.jit
def sum_by_float_atomics(total):
    tl.atomic_add(total, 0.1)
