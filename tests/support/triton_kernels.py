"""Triton kernels that are correct, for tests of the debugger."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + columns, values / tl.sum(values, axis=0), mask=columns < n)


@triton.jit
def matmul(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    width = 8 * tl.cdiv(N, BN)
    group = tl.program_id(0) // width
    rows = min(tl.cdiv(M, BM) - group * 8, 8)
    pid_m = group * 8 + (tl.program_id(0) % width) % rows
    pid_n = (tl.program_id(0) % width) // rows
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_tile = a + offs_m[:, None] * am + offs_k[None, :] * ak
    b_tile = b + offs_k[:, None] * bk + offs_n[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(a_tile, mask=offs_k[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_tile, mask=offs_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        a_tile += BK * ak
        b_tile += BK * bk
    own_m = pid_m * BM + tl.arange(0, BM)
    own_n = pid_n * BN + tl.arange(0, BN)
    mask = (own_m[:, None] < M) & (own_n[None, :] < N)
    tl.store(c + cm * own_m[:, None] + cn * own_n[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def attention(Q, K, V, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    base = tl.program_id(1) * N * D
    rows = block * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(Q + base + rows[:, None] * D + d[None, :])
    greatest = tl.full([BM], -float("inf"), tl.float32)
    weight = tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    end = (block + 1) * BM if CAUSAL else N
    for start in range(0, end, BN):
        k = tl.load(K + base + (start + columns)[:, None] * D + d[None, :])
        v = tl.load(V + base + (start + columns)[:, None] * D + d[None, :])
        scores = tl.dot(q, tl.trans(k)) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= (start + columns)[None, :], scores, -float("inf"))
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(greatest - new)
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None] + tl.dot(p, v)
        greatest = new
    tl.store(out + base + rows[:, None] * D + d[None, :], total / weight[:, None])


@triton.jit
def gather_rows(x, index, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    chosen = tl.load(index + offsets, mask=mask, other=0)
    tl.store(out + offsets, tl.load(x + chosen, mask=mask, other=0.0), mask=mask)


@triton.jit
def bump(value, amount):
    if amount > 2:
        return value + 100.0
    return value + amount


@triton.jit
def divergent(x, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    if tl.sum(values, 0) > 0:
        values = values * 2
        if pid % 2 == 0:
            values += 1
    else:
        values = values - 1
    k = 0
    while k < pid % 3:
        values = values + 1
        k += 1
    if pid == 5:
        return
    for i in range(pid % 4):
        values += i
    values = values + (10.0 if pid > 7 else 20.0)
    values = bump(values, pid % 5)
    tl.store(out + offsets, values)


@triton.jit
def locked_sum(x, out, lock, count, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + pid * BLOCK + columns)
    group = pid % GROUPS
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    if tl.load(count + group) == 0:
        tl.atomic_xchg(count + group, 1)
    else:
        values += tl.load(out + group * BLOCK + columns)
    tl.store(out + group * BLOCK + columns, values)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


@triton.jit
def relay(flag):
    pid = tl.program_id(0)
    if pid < tl.num_programs(0) - 1:
        while tl.load(flag + pid + 1, volatile=True) == 0:
            pass
    tl.atomic_xchg(flag + pid, 1)


@triton.jit
def sum_by_last(x, part, out, counter, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(part + tl.program_id(0), tl.sum(tl.load(x + offsets, mask=offsets < n, other=0.0), 0))
    if tl.atomic_add(counter, 1) == tl.num_programs(0) - 1:
        tl.store(out, tl.sum(tl.load(part + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(counts + tl.load(x + offsets, mask=mask, other=0), 1, mask=mask)


@triton.jit
def transpose_by_block_pointers(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    source = tl.make_block_ptr(x, (M, N), (N, 1), (i * BM, j * BN), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (N, M), (M, 1), (j * BN, i * BM), (BN, BM), (1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, tl.trans(tile), boundary_check=(0, 1))


@triton.jit
def copy_by_descriptor(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    place = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(place, source.load(place) * 2)


@triton.jit
def _linear_step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def along_axes(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.sort(v))
    tl.store(out + N + i, tl.cumsum(v, 0))
    tl.store(out + 2 * N + i, tl.flip(v, 0))
    tl.store(out + 3 * N + i, tl.softmax(v))
    tl.store(out + 4 * N + i, tl.cumprod(v, 0, reverse=True))
    even, odd = tl.split(tl.reshape(v, (N // 2, 2)))
    tl.store(out + 5 * N + i, tl.interleave(odd, even))
    greatest, where = tl.max(v, 0, return_indices=True)
    tl.store(out + 6 * N, greatest)
    tl.store(out + 6 * N + 1, where)
    tl.store(out + 6 * N + 2, tl.argmin(v, 0))
    tl.store(out + 6 * N + 3, tl.xor_sum((v * 100).to(tl.int32), 0))
    _, states = tl.associative_scan((v, v), 0, _linear_step)
    tl.store(out + 7 * N + i, states)
    tl.store(out + 8 * N + i, tl.gather(v, (i + 1) % N, 0))
    tl.store(out + 9 * N + tl.arange(0, 8), tl.topk(v, 8))
    tl.store(out + 10 * N + tl.arange(0, 16), tl.histogram((tl.abs(v) * 4).to(tl.int32), 16))


@triton.jit
def random_numbers(out, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.rand(seed, offsets))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned_copy(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + offsets, tl.load(x + offsets))
    else:
        tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)
