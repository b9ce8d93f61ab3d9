"""Correct kernels of attention."""

# ruff: noqa: N803 - names as in papers; constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal, softmax


def reference(q, k, v, allowed=True):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(allowed, scores, -np.inf)) @ v


@triton.jit
def forward_kernel(
    q,
    k,
    v,
    out,
    lse,
    scale,
    heads,
    shared,
    n,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    WINDOW: tl.constexpr,
):
    start, head = tl.program_id(0) * BM, tl.program_id(1)
    own = head.to(tl.int64) * n * D
    theirs = (head // shared).to(tl.int64) * n * D
    rows, d = start + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + own + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    greatest = tl.full([BM], -float("inf"), tl.float32)
    weight = tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    low = max(start - WINDOW, 0) // BN * BN if WINDOW else 0
    for at in range(low, min(start + BM, n), BN):
        columns = at + tl.arange(0, BN)
        is_key = columns < n
        keys = tl.load(k + theirs + columns[None, :] * D + d[:, None], mask=is_key[None, :], other=0.0)
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        allowed = (rows[:, None] >= columns[None, :]) & is_key[None, :]
        if WINDOW:
            allowed &= rows[:, None] - columns[None, :] < WINDOW
        scores = tl.where(allowed, scores, -1.0e30)
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.where(allowed, tl.exp2(scores - new[:, None]), 0.0)
        shrink = tl.exp2(greatest - new)
        weight = weight * shrink + tl.sum(p, 1)
        values = tl.load(v + theirs + columns[:, None] * D + d[None, :], mask=is_key[:, None], other=0.0)
        total = tl.dot(p.to(values.dtype), values, total * shrink[:, None])
        greatest = new
    tl.store(lse + head * n + rows, greatest * 0.69314718 + tl.log(weight), mask=rows < n)
    tl.store(out + own + rows[:, None] * D + d[None, :], total / weight[:, None], mask=rows[:, None] < n)


def causal(n, window=None):
    distance = np.arange(n)[:, None] - np.arange(n)
    return (distance >= 0) & (distance < (window or n))


@correct
def causal_attention_with_shared_heads():
    q, k, v = normal(4, 50, 16), normal(2, 50, 16, seed=1), normal(2, 50, 16, seed=2)
    out, lse = np.empty_like(q), np.empty((4, 50), "f4")
    forward_kernel[(4, 4)](q, k, v, out, lse, 0.25, 4, 2, 50, BM=16, BN=16, D=16, WINDOW=0)
    return [(out, reference(q, np.repeat(k, 2, 0), np.repeat(v, 2, 0), causal(50)))]


@correct
def attention_in_a_sliding_window():
    q, k, v = (normal(2, 70, 16, seed=s) for s in range(3))
    out, lse = np.empty_like(q), np.empty((2, 70), "f4")
    forward_kernel[(5, 2)](q, k, v, out, lse, 0.25, 2, 1, 70, BM=16, BN=16, D=16, WINDOW=20)
    return [(out, reference(q, k, v, causal(70, 20)))]


@triton.jit
def delta_kernel(out, dout, delta, D: tl.constexpr, B: tl.constexpr):
    rows, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    place = rows[:, None] * D + d[None, :]
    tl.store(delta + rows, tl.sum(tl.load(out + place) * tl.load(dout + place), 1))


@triton.jit
def backward_kernel(q, k, v, dout, lse, delta, dq, dk, dv, scale, n, B: tl.constexpr, D: tl.constexpr):
    own = tl.program_id(1) * n
    block, d, i = tl.program_id(0) * B, tl.arange(0, D), tl.arange(0, B)
    columns = block + i
    at = (own + columns)[:, None] * D + d[None, :]
    keys, values = tl.load(k + at), tl.load(v + at)
    grad_k, grad_v = tl.zeros([B, D], tl.float32), tl.zeros([B, D], tl.float32)
    for start in range(block, n, B):
        rows = start + i
        there = (own + rows)[:, None] * D + d[None, :]
        queries, grad = tl.load(q + there), tl.load(dout + there)
        p = tl.exp(tl.dot(queries, tl.trans(keys)) * scale - tl.load(lse + own + rows)[:, None])
        p = tl.where(rows[:, None] >= columns[None, :], p, 0.0)
        grad_v += tl.dot(tl.trans(p), grad)
        ds = p * (tl.dot(grad, tl.trans(values)) - tl.load(delta + own + rows)[:, None]) * scale
        grad_k += tl.dot(tl.trans(ds), queries)
    tl.store(dk + at, grad_k)
    tl.store(dv + at, grad_v)
    rows = columns
    queries, grad = tl.load(q + at), tl.load(dout + at)
    row_lse, row_delta = tl.load(lse + own + rows), tl.load(delta + own + rows)
    grad_q = tl.zeros([B, D], tl.float32)
    for start in range(0, block + B, B):
        others = start + i
        there = (own + others)[:, None] * D + d[None, :]
        keys, values = tl.load(k + there), tl.load(v + there)
        p = tl.exp(tl.dot(queries, tl.trans(keys)) * scale - row_lse[:, None])
        p = tl.where(rows[:, None] >= others[None, :], p, 0.0)
        ds = p * (tl.dot(grad, tl.trans(values)) - row_delta[:, None]) * scale
        grad_q += tl.dot(ds, keys)
    tl.store(dq + at, grad_q)


@correct
def attention_backward():
    q, k, v, dout = (normal(2, 64, 16, seed=s) for s in range(4))
    scores = np.where(causal(64), q @ k.swapaxes(1, 2) / 4, -np.inf)
    p = softmax(scores)
    out, lse = p @ v, np.log(np.exp(scores).sum(-1)).astype("f4")
    delta, dq, dk, dv = np.empty((2, 64), "f4"), np.empty_like(q), np.empty_like(k), np.empty_like(v)
    delta_kernel[(8,)](out.astype("f4"), dout, delta, D=16, B=16)
    backward_kernel[(4, 2)](q, k, v, dout, lse, delta, dq, dk, dv, 0.25, 64, B=16, D=16)
    ds = p * (dout @ v.swapaxes(1, 2) - (out * dout).sum(-1, keepdims=True)) / 4
    return [(dq, ds @ k), (dk, ds.swapaxes(1, 2) @ q), (dv, p.swapaxes(1, 2) @ dout)]


@triton.jit
def paged_kernel(q, cache_k, cache_v, table, lengths, out, scale, pages, PAGE: tl.constexpr, D: tl.constexpr):
    sequence = tl.program_id(0)
    length = tl.load(lengths + sequence)
    d, i = tl.arange(0, D), tl.arange(0, PAGE)
    query = tl.load(q + sequence * D + d)
    greatest, weight = -float("inf"), 0.0
    total = tl.zeros([D], tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        block = tl.load(table + sequence * pages + page)
        place = (block * PAGE + i)[:, None] * D + d[None, :]
        is_token = page * PAGE + i < length
        keys = tl.load(cache_k + place, mask=is_token[:, None], other=0.0)
        values = tl.load(cache_v + place, mask=is_token[:, None], other=0.0)
        scores = tl.where(is_token, tl.sum(keys * query[None, :], 1) * scale, -float("inf"))
        new = tl.maximum(greatest, tl.max(scores, 0))
        p = tl.exp(scores - new)
        shrink = tl.exp(greatest - new)
        weight = weight * shrink + tl.sum(p, 0)
        total = total * shrink + tl.sum(p[:, None] * values, 0)
        greatest = new
    tl.store(out + sequence * D + d, total / weight)


@correct
def paged_attention():
    lengths = np.array([5, 16, 1, 23], "i4")
    table = np.full((4, 3), -1, "i4")
    free = iter(np.random.default_rng(0).permutation(8))
    for sequence, length in enumerate(lengths):
        for page in range(-(-length // 8)):
            table[sequence, page] = next(free)
    q, k, v = normal(4, 16), normal(8, 8, 16), normal(8, 8, 16, seed=1)
    out = np.empty_like(q)
    paged_kernel[(4,)](q, k, v, table, lengths, out, 0.25, 3, PAGE=8, D=16)
    expected = []
    for sequence, length in enumerate(lengths):
        keys, values = (x[table[sequence]].reshape(-1, 16)[:length] for x in (k, v))
        expected.append(reference(q[sequence : sequence + 1], keys, values)[0])
    return [(out, np.array(expected))]


@triton.jit
def split_kernel(q, k, v, part, top, scale, n, SPLIT: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    head, split = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    size = tl.cdiv(n, SPLIT)
    places = split * size + tl.arange(0, B)
    mask = (tl.arange(0, B) < size) & (places < n)
    at = head * n * D + places[:, None] * D + d[None, :]
    keys = tl.load(k + at, mask=mask[:, None], other=0.0)
    scores = tl.sum(keys * tl.load(q + head * D + d)[None, :], 1) * scale
    scores = tl.where(mask, scores, -1e30)
    greatest = tl.max(scores, 0)
    p = tl.where(mask, tl.exp(scores - greatest), 0.0)
    values = tl.load(v + at, mask=mask[:, None], other=0.0)
    place = head * SPLIT + split
    tl.store(part + place * D + d, tl.sum(p[:, None] * values, 0))
    tl.store(top + place * 2, greatest)
    tl.store(top + place * 2 + 1, tl.sum(p, 0))


@triton.jit
def joined_kernel(part, top, out, SPLIT: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    s, d = tl.arange(0, SPLIT), tl.arange(0, D)
    greatest = tl.load(top + (head * SPLIT + s) * 2)
    factor = tl.exp(greatest - tl.max(greatest, 0))
    weight = tl.sum(tl.load(top + (head * SPLIT + s) * 2 + 1) * factor, 0)
    parts = tl.load(part + (head * SPLIT + s)[:, None] * D + d[None, :])
    tl.store(out + head * D + d, tl.sum(parts * factor[:, None], 0) / weight)


@correct
def decoding_in_parts():
    q, k, v = normal(3, 16), normal(3, 45, 16), normal(3, 45, 16, seed=1)
    part, top, out = np.empty((3, 4, 16), "f4"), np.empty((3, 4, 2), "f4"), np.empty_like(q)
    split_kernel[(3, 4)](q, k, v, part, top, 0.25, 45, SPLIT=4, B=16, D=16)
    joined_kernel[(3,)](part, top, out, SPLIT=4, D=16)
    return [(out, reference(q[:, None], k, v)[:, 0])]


@triton.jit
def linear_kernel(q, k, v, out, n, B: tl.constexpr, D: tl.constexpr):
    base = tl.program_id(0) * n * D
    i, d = tl.arange(0, B), tl.arange(0, D)
    state = tl.zeros([D, D], tl.float32)
    for start in range(0, n, B):
        rows = start + i
        place = base + rows[:, None] * D + d[None, :]
        mask = rows[:, None] < n
        queries = tl.load(q + place, mask=mask, other=0.0)
        keys = tl.load(k + place, mask=mask, other=0.0)
        values = tl.load(v + place, mask=mask, other=0.0)
        scores = tl.where(i[:, None] >= i[None, :], tl.dot(queries, tl.trans(keys)), 0.0)
        tl.store(out + place, tl.dot(scores, values) + tl.dot(queries, state), mask=mask)
        state += tl.dot(tl.trans(keys), values)


@correct
def linear_attention_in_chunks():
    q, k, v = (normal(2, 40, 16, seed=s) for s in range(3))
    out = np.empty_like(q)
    linear_kernel[(2,)](q, k, v, out, 40, B=16, D=16)
    return [(out / 10, np.where(causal(40), q @ k.swapaxes(1, 2), 0) @ v / 10)]
