"""Triton kernels with a defect of speed, each beside a repaired twin; `# slow` marks the line that is to blame."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)  # slow
    tl.store(out + offsets, values * factor, mask=mask)


@triton.jit
def scale_rows(x, out, stride, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)  # slow
    tl.store(out + offsets, values * factor)


@triton.jit
def copy_columns(x, out, stride, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    values = tl.load(x + rows * stride + tl.program_id(0))  # slow
    tl.store(out + tl.program_id(0) * BLOCK + rows, values)


@triton.jit
def copy_rows(x, out, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * stride + columns)
    tl.store(out + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def copy_first_of_eight(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets * 8)  # slow
    tl.store(out + offsets, values)


@triton.jit
def rotate_pairs(x, out, BLOCK: tl.constexpr):
    pairs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real, imaginary = tl.load(x + pairs * 2), tl.load(x + pairs * 2 + 1)
    tl.store(out + pairs * 2, -imaginary)
    tl.store(out + pairs * 2 + 1, real)


@triton.jit
def write_columns(x, out, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    tile = tl.load(x + rows[:, None] * BN + columns[None, :])
    tl.store(out + columns[None, :] * stride + rows[:, None] * 64, tile)  # slow


@triton.jit
def write_rows(x, out, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    tile = tl.load(x + rows[:, None] * BN + columns[None, :])
    tl.store(out + rows[:, None] * stride + columns[None, :], tile)


@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):  # loop
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + columns[None, :] * K + (k + ks)[:, None])
        total = tl.dot(left, right, total, input_precision=PRECISION)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def product_of_rows(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :])  # slow
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def scale_columns(x, weight, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    first = tl.program_id(0) * n
    for row in range(n):
        values = tl.load(x + (first + row) * BLOCK + columns)
        factors = tl.load(weight + columns)  # slow
        tl.store(out + (first + row) * BLOCK + columns, values * factors)


@triton.jit
def scale_columns_once(x, weight, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    first = tl.program_id(0) * n
    factors = tl.load(weight + columns)
    for row in range(n):
        values = tl.load(x + (first + row) * BLOCK + columns)
        tl.store(out + (first + row) * BLOCK + columns, values * factors)


@triton.jit
def add_to_columns(x, weight, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(n):
        values = tl.load(x + row * BLOCK + columns)
        tl.store(out + columns, tl.load(out + columns) + values)


@triton.jit
def sum_with_atomics(x, weight, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(n):
        values = tl.load(x + row * BLOCK + columns) * tl.load(weight + columns)
        tl.atomic_add(out, tl.sum(values, 0))


@triton.jit
def strip_of_products(a, b, c, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ks = tl.arange(0, BK)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        left = tl.load(a + rows[:, None] * BK + ks[None, :])  # slow
        right = tl.load(b + columns[None, :] * BK + ks[:, None])
        tl.store(c + rows[:, None] * n + columns[None, :], tl.dot(left, right).to(c.dtype.element_ty))


@triton.jit
def strip_of_products_once(a, b, c, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ks = tl.arange(0, BK)
    left = tl.load(a + rows[:, None] * BK + ks[None, :])
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        right = tl.load(b + columns[None, :] * BK + ks[:, None])
        tl.store(c + rows[:, None] * n + columns[None, :], tl.dot(left, right).to(c.dtype.element_ty))


@triton.jit
def softplus(x, out, beta, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    scaled = values * tl.load(beta)  # slow
    tl.store(out + offsets, scaled.to(tl.float32))


@triton.jit
def weighted_square(x, out, n, weight, BLOCK: tl.constexpr):
    factor = tl.load(weight)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        total += (values * values * factor).to(tl.float32)  # slow
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def mean_square(x, out, n, eps, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        total += values * values / eps  # slow
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def mean_square_after(x, out, n, eps, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        total += values * values
    tl.store(out + tl.program_id(0), tl.sum(total, 0) / eps)


@triton.jit
def add_periodic(x, bias, out, n, period, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        column = offsets % period  # slow
        values = tl.load(x + base + offsets) + tl.load(bias + column)
        tl.store(out + base + offsets, values)


@triton.jit
def add_in_rows(x, bias, out, n, period, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        values = tl.load(x + base + offsets) + tl.load(bias + offsets)
        tl.store(out + base + offsets, values)


@triton.jit
def sum_by_atomics(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.atomic_add(out + tl.zeros((BLOCK,), tl.int32), values)  # slow


@triton.jit
def sum_then_atomic(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.atomic_add(out, tl.sum(values, 0))


@triton.jit
def count_in_loop(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        tl.atomic_add(out, tl.sum(values, 0))  # slow


@triton.jit
def count_after_loop(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
    tl.atomic_add(out, tl.sum(total, 0))


@triton.jit
def sum_in_loop(x, out, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        total += tl.sum(values, 0)  # slow
    tl.store(out + tl.program_id(0), total)


@triton.jit
def sum_after_loop(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def greatest_in_loop(x, out, n, BLOCK: tl.constexpr):
    greatest = -float("inf")
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        greatest = tl.maximum(greatest, tl.max(values, 0))  # slow
    tl.store(out + tl.program_id(0), greatest)


@triton.jit
def greatest_after_loop(x, out, n, BLOCK: tl.constexpr):
    greatest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        greatest = tl.maximum(greatest, values)
    tl.store(out + tl.program_id(0), tl.max(greatest, 0))


@triton.jit
def sum_of_transposed(x, y, out, n, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    for start in range(0, n, B):
        tile = tl.load(x + tl.program_id(0) * n * B + (start + rows) * B + columns)
        other = tl.load(y + tl.program_id(0) * n * B + (start + rows) * B + columns)
        total = tile + tl.trans(other)  # slow
        tl.store(out + tl.program_id(0) * n * B + (start + rows) * B + columns, total)


@triton.jit
def sum_of_tiles(x, y, out, n, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    for start in range(0, n, B):
        tile = tl.load(x + tl.program_id(0) * n * B + (start + rows) * B + columns)
        other = tl.load(y + tl.program_id(0) * n * B + (start + rows) * B + columns)
        tl.store(out + tl.program_id(0) * n * B + (start + rows) * B + columns, tile + other)


@triton.jit
def product_by_sum(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + columns[None, :] * K + (k + ks)[:, None])
        total += tl.sum(left[:, :, None].to(tl.float32) * right[None, :, :], 1)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def product_of_widened(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :]).to(tl.float32)
        right = tl.load(b + columns[None, :] * K + (k + ks)[:, None]).to(tl.float32)
        total = tl.dot(left, right, total, input_precision=PRECISION)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def subtract_mean(x, mean, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):  # slow
        total += tl.load(x + start + tl.arange(0, BLOCK))
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + own, tl.load(x + own) - tl.sum(total, 0) / n)


@triton.jit
def subtract_known_mean(x, mean, out, n, BLOCK: tl.constexpr):
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + own, tl.load(x + own) - tl.load(mean) / n)


@triton.jit
def divide_by_greatest(x, greatest, out, n, BLOCK: tl.constexpr):
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    most = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):  # slow
        offsets = start + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.abs(tl.load(x + offsets, mask=offsets < n, other=0.0)))
    tl.store(out + own, tl.load(x + own) / tl.max(most, 0))


@triton.jit
def divide_by_known(x, greatest, out, n, BLOCK: tl.constexpr):
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + own, tl.load(x + own) / tl.load(greatest))


@triton.jit
def add_from_row(x, out, n, BLOCK: tl.constexpr):
    own = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out + own)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(out + own, total)


@triton.jit
def first_sums_all(x, out, n, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n, BLOCK):
            total += tl.load(x + start + tl.arange(0, BLOCK))
        tl.store(out, tl.sum(total, 0))


@triton.jit
def settle_unrolled(x, out, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    for _ in tl.static_range(TURNS):
        values = tl.exp(-values) * 0.5 + values * 0.25  # slow
    tl.store(out + offsets, values)


@triton.jit
def settle(x, out, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    for _ in range(TURNS):
        values = tl.exp(-values) * 0.5 + values * 0.25
    tl.store(out + offsets, values)


@triton.jit
def fenced_sum(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + tl.arange(0, BLOCK))
        tl.debug_barrier()  # slow
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def sum_of_neighbours(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets))
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for turn in range(n):
        tl.debug_barrier()
        total += tl.load(out + tl.program_id(0) * BLOCK + (tl.arange(0, BLOCK) + turn) % BLOCK)
    tl.store(x + offsets, total)
