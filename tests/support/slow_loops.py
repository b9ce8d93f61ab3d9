"""More Triton kernels with a defect of speed, each beside a repaired twin; `# slow` marks the line that is to blame."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def transpose_by_index(x, out, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // COLUMNS, at % COLUMNS
    values = tl.load(x + at)
    tl.store(out + column * rows + row, values)  # slow


@triton.jit
def transpose_by_size(x, out, rows, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + (at % columns) * rows + at // columns)  # slow
    tl.store(out + at, values)


@triton.jit
def transpose_by_count(x, out, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(out + (at % columns) * (n // columns) + at // columns, values)  # slow


@triton.jit
def transpose_by_tiles(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + row[:, None] * columns + column[None, :])
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile))


@triton.jit
def add_bias_by_index(x, bias, out, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(bias + at % CHANNELS))


@triton.jit
def product_by_columns(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(K):
        left = tl.load(a + k * 4096 + rows)
        right = tl.load(b + k * 4096 + columns)
        total += left[:, None].to(tl.float32) * right[None, :].to(tl.float32)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def product_of_columns(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, 32)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, 32):
        left = tl.load(a + (k + ks)[None, :] * 4096 + rows[:, None])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def running_sum_of_outer(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    state = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(K):
        left = tl.load(a + k * BM + rows)
        right = tl.load(b + k * BN + columns)
        state += left[:, None] * right[None, :]
        tl.store(c + (tl.program_id(0) * K + k) * BM + rows, tl.sum(state, 1))


@triton.jit
def product_while(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    k = 0
    while k < K:  # slow
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + columns[None, :] * K + (k + ks)[:, None])
        total = tl.dot(left, right, total, input_precision=PRECISION)
        k += BK
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def add_rows_atomically(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(n):
        values = tl.load(x + (tl.program_id(0) * n + row) * BLOCK + columns)
        tl.atomic_add(out + columns, values)  # slow


@triton.jit
def add_rows_then_atomically(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(n):
        total += tl.load(x + (tl.program_id(0) * n + row) * BLOCK + columns)
    tl.atomic_add(out + columns, total)


@triton.jit
def count_pixels(x, out, span, BINS: tl.constexpr, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * span
    for start in range(begin, begin + span, BLOCK):
        level = tl.load(x + start + tl.arange(0, BLOCK)).to(tl.int32)
        tl.atomic_add(out + level, 1)  # slow


@triton.jit
def count_pixels_before(x, out, span, BINS: tl.constexpr, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * span
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(begin, begin + span, BLOCK):
        counts += tl.histogram(tl.load(x + start + tl.arange(0, BLOCK)).to(tl.int32), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def count_pixels_in_strides(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        level = tl.load(x + start + tl.arange(0, BLOCK)).to(tl.int32)
        tl.atomic_add(out + level, 1)  # slow


@triton.jit
def count_pixels_of_part(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    span = tl.cdiv(n, tl.num_programs(0))
    first = tl.program_id(0) * span
    for start in range(first, tl.minimum(first + span, n), BLOCK):
        level = tl.load(x + start + tl.arange(0, BLOCK)).to(tl.int32)
        tl.atomic_add(out + level, 1)


@triton.jit
def count_each_row(x, out, n, BLOCK: tl.constexpr):
    for row in range(n):
        values = tl.load(x + (tl.program_id(0) * n + row) * BLOCK + tl.arange(0, BLOCK))
        tl.atomic_add(out + row, tl.sum(values, 0))


@triton.jit
def gelu_by_power(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    inner = values + 0.044715 * libdevice.pow(values, 3.0)  # slow
    tl.store(out + at, values / (1 + tl.exp(-1.5957691 * inner)))


@triton.jit
def gelu_by_products(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    inner = values + 0.044715 * values * values * values
    tl.store(out + at, values / (1 + tl.exp(-1.5957691 * inner)))


@triton.jit
def root_of_power(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.pow(tl.load(x + at), 0.7))


@triton.jit
def add_rows_in_memory(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    own = out + tl.program_id(0) * BLOCK + columns
    for row in range(n):
        values = tl.load(x + (tl.program_id(0) * n + row) * BLOCK + columns)
        tl.store(own, tl.load(own) + values)  # slow


@triton.jit
def add_rows_in_registers(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    own = out + tl.program_id(0) * BLOCK + columns
    total = tl.load(own)
    for row in range(n):
        total += tl.load(x + (tl.program_id(0) * n + row) * BLOCK + columns).to(total.dtype)
    tl.store(own, total)


@triton.jit
def store_the_last_row(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(n):
        values = tl.load(x + (tl.program_id(0) * n + row) * BLOCK + columns)
        if row == n - 1:
            tl.store(out + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def attend_to_all(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n, BN):  # slow
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.where(rows[:, None] >= keys[None, :], tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_to_all_while(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    start = 0
    while start < n:  # slow
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.where(rows[:, None] >= keys[None, :], tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
        start += BN
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_to_earlier(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.where(rows[:, None] >= keys[None, :], tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_up_to_length(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.where(keys[None, :] < n, tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_with_signs(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.exp(tl.where(rows[:, None] >= keys[None, :], scores, -scores))
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_to_others(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        weights = tl.where(rows[:, None] != keys[None, :], tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def sum_by_elements(x, out, n):
    total = 0.0
    for at in range(n):
        total += tl.load(x + tl.program_id(0) * n + at)  # slow
    tl.store(out + tl.program_id(0), total)


@triton.jit
def counts_before(x, out):
    program = tl.program_id(0)
    before = 0
    for at in range(program):
        before += tl.load(x + at)  # slow
    tl.store(out + program, before + tl.load(x + program))


@triton.jit
def counts_before_by_tiles(x, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    before = tl.sum(tl.load(x + at, mask=at < program, other=0))
    tl.store(out + program, before + tl.load(x + program))


@triton.jit
def scale_by_elements(x, out):
    value = tl.load(x + tl.program_id(0))  # slow
    tl.store(out + tl.program_id(0), value * 2.0)


@triton.jit
def scale_by_tiles(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * 2.0)


@triton.jit
def weigh_groups(x, weights, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for group in range(n):
        weight = tl.load(weights + group)
        total += weight * tl.load(x + (tl.program_id(0) * n + group) * BLOCK + columns)
    tl.store(out + tl.program_id(0) * BLOCK + columns, total)


@triton.jit
def flip(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + n - 1 - at))


@triton.jit
def sum_columns(x, out, n, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, n, BM):
        rows = start + tl.arange(0, BM)
        total += tl.load(x + rows[:, None] * 8192 + columns[None, :])  # slow
    tl.store(out + columns, tl.sum(total, 0))


@triton.jit
def double_rows_of_four(x, out, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + at, tl.load(x + at) * 2)


@triton.jit
def scale_and_print(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    values = tl.load(x + at, mask=mask) * factor
    if tl.program_id(0) == 0:
        tl.device_print("factor", factor)  # slow
    tl.store(out + at, values, mask=mask)


@triton.jit
def norm_blocks_of_rows(x, out, n, BLOCK: tl.constexpr):
    row = x + tl.program_id(0) * n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):  # slow
        values = tl.load(row + start + tl.arange(0, BLOCK))
        total += values * values
    own = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * n + own, tl.load(row + own) / tl.sqrt(tl.sum(total, 0)))


@triton.jit
def norm_rows(x, out, n, BLOCK: tl.constexpr):
    row = x + tl.program_id(0) * n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(row + start + tl.arange(0, BLOCK))
        total += values * values
    norm = 1 / tl.sqrt(tl.sum(total, 0))
    for start in range(0, n, BLOCK):
        own = start + tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0) * n + own, tl.load(row + own) * norm)


@triton.jit
def sum_of_rows(x, out, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + rows[:, None] * BLOCK + columns[None, :])
    tl.atomic_add(out + columns, tl.sum(values, 0), sem="relaxed")  # slow


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + row, weights / tl.sum(weights, 0))


@triton.jit
def product_of_bytes(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :])
        total = tl.dot(left.to(tl.float32), right.to(tl.float32), total, input_precision=PRECISION)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def product_of_scaled_bytes(
    a, b, scales, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    scale = tl.load(scales + columns)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :]).to(tl.float32) * scale[None, :]
        total = tl.dot(left.to(tl.float32), right, total, input_precision=PRECISION)  # slow
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def scaled_product_of_bytes(
    a, b, scales, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    scale = tl.load(scales + columns)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :]).to(left.dtype)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + rows[:, None] * 4096 + columns[None, :], (total * scale[None, :]).to(c.dtype.element_ty))


@triton.jit
def product_of_converted_bytes(
    a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        right = tl.load(b + (k + ks)[:, None] * 4096 + columns[None, :])
        total = tl.dot(left, right.to(left.dtype), total, input_precision=PRECISION)
    tl.store(c + rows[:, None] * 4096 + columns[None, :], total.to(c.dtype.element_ty))
