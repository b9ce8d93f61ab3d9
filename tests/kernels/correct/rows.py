"""Correct kernels that reduce rows: normalisations, softmax, losses."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal
from tests.kernels.correct.table import softmax as expected_softmax


@triton.jit
def persistent_softmax_kernel(out, x, stride, rows, n, B: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        columns = tl.arange(0, B)
        values = tl.load(x + row * stride + columns, mask=columns < n, other=-float("inf"))
        values = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride + columns, values / tl.sum(values, axis=0), mask=columns < n)


@correct
def persistent_softmax():
    x = normal(23, 77)
    out = np.zeros_like(x)
    persistent_softmax_kernel[(4,)](out, x, 77, 23, 77, B=128)
    return [(out, expected_softmax(x))]


@triton.jit
def online_softmax_kernel(out, x, n, B: tl.constexpr):
    row = tl.program_id(0) * n
    greatest = -float("inf")
    total = 0.0
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        values = tl.load(x + row + columns, mask=columns < n, other=-float("inf"))
        new = tl.maximum(greatest, tl.max(values, 0))
        total = total * tl.exp(greatest - new) + tl.sum(tl.exp(values - new), 0)
        greatest = new
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        values = tl.load(x + row + columns, mask=columns < n, other=0.0)
        tl.store(out + row + columns, tl.exp(values - greatest) / total, mask=columns < n)


@correct
def softmax_in_two_passes():
    x = normal(5, 300)
    out = np.zeros_like(x)
    online_softmax_kernel[(5,)](out, x, 300, B=128)
    return [(out, expected_softmax(x))]


@triton.jit
def softmax_backward_kernel(y, dy, dx, n, R: tl.constexpr, B: tl.constexpr, rows):
    row = tl.program_id(0) * R + tl.arange(0, R)
    column = tl.arange(0, B)
    mask = (row < rows)[:, None] & (column < n)[None, :]
    place = row[:, None] * n + column[None, :]
    weight = tl.load(y + place, mask=mask, other=0.0)
    grad = tl.load(dy + place, mask=mask, other=0.0)
    inner = tl.sum(weight * grad, axis=1, keep_dims=True)
    tl.store(dx + place, weight * (grad - inner), mask=mask)


@correct
def softmax_backward_of_several_rows():
    y, dy = expected_softmax(normal(10, 30)), normal(10, 30, seed=1)
    dx = np.zeros_like(y)
    softmax_backward_kernel[(3,)](y, dy, dx, 30, R=4, B=32, rows=10)
    return [(dx, y * (dy - (y * dy).sum(1, keepdims=True)))]


@triton.jit
def layer_norm_kernel(x, out, w, b, mean, rstd, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    out += row * stride
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        total += tl.load(x + columns, mask=columns < n, other=0.0)
    mu = tl.sum(total, axis=0) / n
    square = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        value = tl.load(x + columns, mask=columns < n, other=0.0)
        value = tl.where(columns < n, value - mu, 0.0)
        square += value * value
    scale = 1 / tl.sqrt(tl.sum(square, axis=0) / n + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, scale)
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        mask = columns < n
        value = (tl.load(x + columns, mask=mask, other=0.0) - mu) * scale
        value = value * tl.load(w + columns, mask=mask) + tl.load(b + columns, mask=mask)
        tl.store(out + columns, value, mask=mask)


def normalised(x, eps=1e-5):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + eps)


@correct
def layer_norm():
    x, w, b = normal(6, 200), normal(200), normal(200, seed=1)
    out, mean, rstd = np.empty_like(x), np.empty(6, "f4"), np.empty(6, "f4")
    layer_norm_kernel[(6,)](x, out, w, b, mean, rstd, 200, 200, 1e-5, B=64)
    return [(out, normalised(x) * w + b), (mean, x.mean(1))]


@triton.jit
def layer_norm_backward_kernel(dx, dy, dw, x, w, mean, rstd, lock, n, GROUPS: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    value = tl.load(x + row * n + columns, mask=mask, other=0.0)
    grad = tl.load(dy + row * n + columns, mask=mask, other=0.0)
    weight = tl.load(w + columns, mask=mask, other=0.0)
    scale = tl.load(rstd + row)
    hat = tl.where(mask, (value - tl.load(mean + row)) * scale, 0.0)
    weighted = tl.where(mask, weight * grad, 0.0)
    c1 = tl.sum(hat * weighted, axis=0) / n
    c2 = tl.sum(weighted, axis=0) / n
    tl.store(dx + row * n + columns, (weighted - (hat * c1 + c2)) * scale, mask=mask)
    own = row % GROUPS
    part = grad * hat
    while tl.atomic_cas(lock + own, 0, 1) == 1:
        pass
    if tl.load(lock + GROUPS + own) == 0:
        tl.atomic_xchg(lock + GROUPS + own, 1)
    else:
        part += tl.load(dw + own * n + columns, mask=mask, other=0.0)
    tl.store(dw + own * n + columns, part, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock + own, 0)


@triton.jit
def column_sum_kernel(part, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, m, BM):
        rows = start + tl.arange(0, BM)
        mask = (rows[:, None] < m) & (columns[None, :] < n)
        total += tl.load(part + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(out + columns, tl.sum(total, axis=0), mask=columns < n)


@correct
def layer_norm_backward_with_locks():
    x, dy, w = normal(12, 50), normal(12, 50, seed=1), normal(50)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dx, part, dw = np.empty_like(x), np.zeros((4, 50), "f4"), np.empty(50, "f4")
    layer_norm_backward_kernel[(12,)](dx, dy, part, x, w, mean, rstd, np.zeros(8, "i4"), 50, GROUPS=4, B=64)
    column_sum_kernel[(2,)](part, dw, 4, 50, BM=4, BN=32)
    hat, weighted = normalised(x), w * dy
    inner = hat * (hat * weighted).mean(1, keepdims=True) + weighted.mean(1, keepdims=True)
    return [(dx, (weighted - inner) * rstd[:, None]), (dw, (dy * hat).sum(0))]


@triton.jit
def rms_norm_kernel(x, residual, w, out, n, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, B)
    mask = columns < n
    value = tl.load(x + row * n + columns, mask=mask, other=0.0)
    value += tl.load(residual + row * n + columns, mask=mask, other=0.0)
    tl.store(residual + row * n + columns, value, mask=mask)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(out + row * n + columns, value * scale * tl.load(w + columns, mask=mask, other=0.0), mask=mask)


@correct
def rms_norm_with_residual():
    x, residual, w = normal(9, 70), normal(9, 70, seed=1), normal(70)
    both = x + residual
    out = np.empty_like(x)
    rms_norm_kernel[(9,)](x, residual, w, out, 70, 1e-6, B=128)
    return [(out, both / np.sqrt((both**2).mean(1, keepdims=True) + 1e-6) * w), (residual, both)]


@triton.jit
def rms_norm_backward_kernel(dy, dx, x, w, dw, rows, n, eps, PER: tl.constexpr, B: tl.constexpr):
    program = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    weight = tl.load(w + columns, mask=mask, other=0.0)
    total = tl.zeros((B,), tl.float32)
    for row in range(program * PER, min((program + 1) * PER, rows)):
        value = tl.load(x + row * n + columns, mask=mask, other=0.0)
        grad = tl.load(dy + row * n + columns, mask=mask, other=0.0)
        scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
        inner = tl.sum(grad * weight * value, 0) * scale * scale / n
        tl.store(dx + row * n + columns, scale * (grad * weight - inner * value), mask=mask)
        total += grad * value * scale
    tl.store(dw + program * n + columns, total, mask=mask)


@correct
def rms_norm_backward_of_row_blocks():
    x, dy, w = normal(10, 60), normal(10, 60, seed=1), normal(60)
    dx, dw = np.empty_like(x), np.empty((3, 60), "f4")
    rms_norm_backward_kernel[(3,)](dy, dx, x, w, dw, 10, 60, 1e-6, PER=4, B=64)
    scale = 1 / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6)
    inner = (dy * w * x).mean(1, keepdims=True) * scale**2
    return [(dx, scale * (dy * w - inner * x)), (dw.sum(0), (dy * x * scale).sum(0))]


@triton.jit
def group_norm_kernel(x, out, w, b, channels, size, PER: tl.constexpr, eps, B: tl.constexpr):
    batch, group = tl.program_id(0), tl.program_id(1)
    start = batch * channels * size + group * PER * size
    total, square = 0.0, 0.0
    count = PER * size
    for at in range(0, count, B):
        place = at + tl.arange(0, B)
        value = tl.load(x + start + place, mask=place < count, other=0.0)
        total += tl.sum(value, 0)
        square += tl.sum(value * value, 0)
    mean = total / count
    scale = tl.rsqrt(square / count - mean * mean + eps)
    for channel in tl.static_range(PER):
        weight = tl.load(w + group * PER + channel)
        bias = tl.load(b + group * PER + channel)
        for at in range(0, size, B):
            place = at + tl.arange(0, B)
            value = tl.load(x + start + channel * size + place, mask=place < size, other=0.0)
            value = (value - mean) * scale * weight + bias
            tl.store(out + start + channel * size + place, value, mask=place < size)


@correct
def group_norm():
    x, w, b = normal(3, 6, 50), normal(6), normal(6, seed=1)
    out = np.empty_like(x)
    group_norm_kernel[(3, 3)](x, out, w, b, 6, 50, PER=2, eps=1e-5, B=64)
    parts = x.reshape(3, 3, 100)
    hat = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    return [(out, hat.reshape(x.shape) * w[:, None] + b[:, None])]


@triton.jit
def _welford(mean_a, square_a, count_a, mean_b, square_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0, 0.0, count_b / tl.maximum(count, 1.0))
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@triton.jit
def variance_kernel(x, mean, variance, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    value = tl.load(x + row * n + columns, mask=mask, other=0.0)
    mu, square, count = tl.reduce((value, tl.zeros_like(value), mask.to(tl.float32)), 0, _welford)
    tl.store(mean + row, mu)
    tl.store(variance + row, square / count)


@correct
def variance_by_a_combination_of_three_values():
    x = normal(8, 100)
    mean, variance = np.empty(8, "f4"), np.empty(8, "f4")
    variance_kernel[(8,)](x, mean, variance, 100, B=128)
    return [(mean, x.mean(1)), (variance, x.var(1))]


@triton.jit
def cross_entropy_kernel(x, target, loss, n, ignored, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    x += row * n
    if label == ignored:
        for start in range(0, n, B):
            columns = start + tl.arange(0, B)
            tl.store(x + columns, 0.0, mask=columns < n)
        tl.store(loss + row, 0.0)
        return
    chosen = tl.load(x + label)
    greatest, total = float("-inf"), 0.0
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        value = tl.load(x + columns, mask=columns < n, other=float("-inf"))
        new = tl.maximum(greatest, tl.max(value))
        total = total * tl.exp(greatest - new) + tl.sum(tl.exp(value - new))
        greatest = new
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        value = tl.load(x + columns, mask=columns < n, other=float("-inf"))
        grad = tl.exp(value - greatest) / total
        tl.store(x + columns, tl.where(columns == label, grad - 1, grad), mask=columns < n)
    tl.debug_barrier()
    tl.store(loss + row, greatest + tl.log(total) - chosen)


@correct
def cross_entropy_whose_gradient_overwrites_the_input():
    x, target = normal(6, 150), np.array([3, 149, -100, 0, 77, -100])
    weights = expected_softmax(x)
    loss = np.empty(6, "f4")
    kept = target != -100
    expected = np.where(kept, -np.log(weights[np.arange(6), target * kept]), 0)
    gradient = (weights - np.eye(150)[target * kept]) * kept[:, None]
    cross_entropy_kernel[(6,)](x, target, loss, 150, -100, B=64)
    return [(loss, expected), (x, gradient)]


@triton.jit
def kl_kernel(p, q, loss, n, eps, B: tl.constexpr, LOG_TARGET: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        mask = columns < n
        ours = tl.load(p + row * n + columns, mask=mask, other=0.0)
        theirs = tl.load(q + row * n + columns, mask=mask, other=0.0)
        weight = tl.exp(theirs) if LOG_TARGET else theirs
        part = weight * ((theirs if LOG_TARGET else tl.log(tl.maximum(theirs, eps))) - ours)
        total += tl.sum(tl.where(mask, part, 0.0), axis=0)
    tl.store(loss + row, total)


@correct
def kullback_leibler_divergence():
    p, q = np.log(expected_softmax(normal(5, 90))), expected_softmax(normal(5, 90, seed=1))
    plain, logarithmic = np.empty(5, "f4"), np.empty(5, "f4")
    kl_kernel[(5,)](p, q, plain, 90, 1e-10, B=32, LOG_TARGET=False)
    kl_kernel[(5,)](p, np.log(q), logarithmic, 90, 1e-10, B=32, LOG_TARGET=True)
    expected = (q * (np.log(q) - p)).sum(1)
    return [(plain, expected), (logarithmic, expected)]


@triton.jit
def jsd_kernel(x, y, loss, dx, n, beta, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    log_q = tl.load(x + row * n + columns, mask=mask, other=-float("inf"))
    log_p = tl.load(y + row * n + columns, mask=mask, other=-float("inf"))
    q, p = tl.exp(log_q), tl.exp(log_p)
    middle = beta * p + (1 - beta) * q
    log_m = tl.log(tl.where(mask, middle, 1.0))
    part = tl.where(mask, beta * p * (log_p - log_m) + (1 - beta) * q * (log_q - log_m), 0.0)
    tl.store(loss + row * n + columns, part, mask=mask)
    tl.store(dx + row * n + columns, (1 - beta) * q * (log_q - log_m), mask=mask)


@correct
def jensen_shannon_divergence():
    x, y = np.log(expected_softmax(normal(4, 100))), np.log(expected_softmax(normal(4, 100, seed=1)))
    loss, dx = np.zeros_like(x), np.zeros_like(x)
    jsd_kernel[(4,)](x, y, loss, dx, 100, 0.3, B=128)
    q, p = np.exp(x), np.exp(y)
    log_m = np.log(0.3 * p + 0.7 * q)
    return [(loss, 0.3 * p * (y - log_m) + 0.7 * q * (x - log_m)), (dx, 0.7 * q * (x - log_m))]
