"""Correct kernels that multiply matrices."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


@triton.jit
def _tile(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * columns
    first = pid // width * GROUP
    height = min(rows - first, GROUP)
    return first + pid % width % height, pid % width // height


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def grouped_kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    m, n = _tile(tl.program_id(0), M, N, BM, BN, GROUP)
    rows = (m * BM + tl.arange(0, BM)) % M
    columns = (n * BN + tl.arange(0, BN)) % N
    ks = tl.arange(0, BK)
    left, right = a + rows[:, None] * K + ks[None, :], b + ks[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=ks[None, :] < K - k * BK, other=0.0)
        y = tl.load(right, mask=ks[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    own_m, own_n = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    mask = (own_m[:, None] < M) & (own_n[None, :] < N)
    tl.store(c + own_m[:, None] * N + own_n[None, :], total.to(tl.float16), mask=mask)


@correct
def matmul_in_groups_with_an_activation():
    a, b = normal(70, 50, dtype="f2"), normal(50, 90, dtype="f2")
    c = np.empty((70, 90), "f2")
    grouped_kernel[(5 * 6,)](a, b, c, 70, 90, 50, BM=16, BN=16, BK=32, GROUP=2, ACTIVATION="leaky_relu")
    full = a.astype("f4") @ b.astype("f4")
    return [(c, np.where(full >= 0, full, 0.01 * full).astype("f2"))]


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    for pid in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), PROGRAMS, flatten=True):
        m, n = _tile(pid, M, N, BM, BN, 4)
        rows, columns = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            ks = start + tl.arange(0, BK)
            mask_a = (rows < M)[:, None] & (ks < K)[None, :]
            mask_b = (ks < K)[:, None] & (columns < N)[None, :]
            x = tl.load(a + rows[:, None] * K + ks[None, :], mask=mask_a, other=0.0)
            y = tl.load(b + ks[:, None] * N + columns[None, :], mask=mask_b, other=0.0)
            total += tl.dot(x, y)
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(c + rows[:, None] * N + columns[None, :], total, mask=mask)


@correct
def persistent_matmul():
    a, b = normal(50, 40), normal(40, 60)
    c = np.empty((50, 60), "f4")
    persistent_kernel[(3,)](a, b, c, 50, 60, 40, BM=16, BN=16, BK=16, PROGRAMS=3)
    return [(c, a @ b)]


@triton.jit
def split_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        ks = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + ks[:, None] * N + columns[None, :], mask=(ks[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], total, mask=mask, sem="relaxed")


@correct
def matmul_whose_programs_share_k():
    a, b = normal(30, 100), normal(100, 20)
    c = np.zeros((30, 20), "f4")
    split_kernel[(2, 2, 3)](a, b, c, 30, 20, 100, BM=16, BN=16, BK=16, SPLIT=3)
    return [(c, a @ b)]


@triton.jit
def stream_k_kernel(a, b, c, part, lock, N, K, PER: tl.constexpr, B: tl.constexpr, TRIPS: tl.constexpr):
    program = tl.program_id(0)
    start = program * PER
    end = start + PER
    i = tl.arange(0, B)
    while start < end:
        tile = start // TRIPS
        stop = min(end, (tile + 1) * TRIPS)
        m, n = tile // (N // B), tile % (N // B)
        total = tl.zeros((B, B), tl.float32)
        for trip in range(start % TRIPS, stop - tile * TRIPS):
            x = tl.load(a + (m * B + i)[:, None] * K + (trip * B + i)[None, :])
            y = tl.load(b + (trip * B + i)[:, None] * N + (n * B + i)[None, :])
            total += tl.dot(x, y)
        if start % TRIPS == 0:
            if stop < (tile + 1) * TRIPS:
                while tl.atomic_cas(lock + tile, 1, 1) != 1:
                    pass
                total += tl.load(part + tile * B * B + i[:, None] * B + i[None, :])
            tl.store(c + (m * B + i)[:, None] * N + (n * B + i)[None, :], total)
        else:
            tl.store(part + tile * B * B + i[:, None] * B + i[None, :], total)
            tl.debug_barrier()
            tl.atomic_xchg(lock + tile, 1)
        start = stop


@correct
def stream_k_matmul_with_flags():
    a, b = normal(32, 48), normal(48, 32)
    c, part, lock = np.zeros((32, 32), "f4"), np.zeros((4, 16, 16), "f4"), np.zeros(4, "i4")
    stream_k_kernel[(6,)](a, b, c, part, lock, 32, 48, PER=2, B=16, TRIPS=3)
    return [(c, a @ b)]


@triton.jit
def batched_kernel(a, b, c, M, N, K, sa, sb, sc, B: tl.constexpr):
    batch = tl.program_id(2)
    left = tl.make_block_ptr(a + batch * sa, (M, K), (K, 1), (tl.program_id(0) * B, 0), (B, B), (1, 0))
    right = tl.make_block_ptr(b + batch * sb, (K, N), (N, 1), (0, tl.program_id(1) * B), (B, B), (1, 0))
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, K, B):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(right, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(x, y, total)
        left = tl.advance(left, (0, B))
        right = tl.advance(right, (B, 0))
    place = (tl.program_id(0) * B, tl.program_id(1) * B)
    out = tl.make_block_ptr(c + batch * sc, (M, N), (N, 1), place, (B, B), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


@correct
def batched_matmul_by_block_pointers():
    a, b = normal(3, 20, 30), normal(3, 30, 25)
    c = np.empty((3, 20, 25), "f4")
    batched_kernel[(2, 2, 3)](a, b, c, 20, 25, 30, 600, 750, 500, B=16)
    return [(c, a @ b)]


@triton.jit
def descriptor_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([m, k]), right.load([n, k]).T, total)
    out.store([m, n], total.to(tl.float16))


@correct
def matmul_by_descriptors_that_clip():
    a, b = normal(40, 48, dtype="f2"), normal(56, 48, dtype="f2")
    c = np.empty((40, 56), "f2")
    descriptor_kernel[(3, 4)](a, b, c, 40, 56, 48, BM=16, BN=16, BK=32)
    return [(c, (a.astype("f4") @ b.astype("f4").T).astype("f2"))]


@triton.jit
def integer_kernel(a, b, scale_a, scale_b, c, M, N, K, B: tl.constexpr):
    rows, columns, ks = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B), tl.arange(0, B)
    total = tl.zeros((B, B), tl.int32)
    for start in range(0, K, B):
        k = start + ks
        x = tl.load(a + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0)
        y = tl.load(b + k[:, None] * N + columns[None, :], mask=(k[:, None] < K) & (columns[None, :] < N), other=0)
        total = tl.dot(x, y, total)
    left = tl.load(scale_a + rows, mask=rows < M, other=0.0)
    right = tl.load(scale_b + columns, mask=columns < N, other=0.0)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total * left[:, None] * right[None, :], mask=mask)


@correct
def int8_matmul_with_scales():
    random = np.random.default_rng(0)
    a, b = random.integers(-128, 128, (40, 50)).astype("i1"), random.integers(-128, 128, (50, 40)).astype("i1")
    sa, sb = normal(40) / 100, normal(40, seed=1) / 100
    c = np.empty((40, 40), "f4")
    integer_kernel[(2, 2)](a, b, sa, sb, c, 40, 40, 50, B=32)
    return [(c, a.astype("i4") @ b.astype("i4") * sa[:, None] * sb)]


@triton.jit
def block_scaled_kernel(a, b, sa, sb, c, N, K, B: tl.constexpr, GROUP: tl.constexpr):
    rows, columns, ks = (
        tl.program_id(0) * B + tl.arange(0, B),
        tl.program_id(1) * B + tl.arange(0, B),
        tl.arange(0, GROUP),
    )
    groups = K // GROUP
    total = tl.zeros((B, B), tl.float32)
    for group in range(groups):
        x = tl.load(a + rows[:, None] * K + group * GROUP + ks[None, :])
        y = tl.load(b + columns[None, :] * K + group * GROUP + ks[:, None])
        scale = tl.load(sa + rows * groups + group)[:, None] * tl.load(sb + tl.program_id(1) * groups + group)
        total += tl.dot(x, y) * scale
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@correct
def fp8_matmul_scaled_by_blocks():
    a, b = (normal(32, 64, seed=s).astype(ml_dtypes.float8_e4m3fn) for s in (0, 1))
    sa, sb = np.abs(normal(32, 2)), np.abs(normal(2, 2))
    c = np.empty((32, 32), "f4")
    block_scaled_kernel[(2, 2)](a, b, sa, sb, c, 32, 64, B=16, GROUP=32)
    left = a.astype("f4") * np.repeat(sa, 32, 1)
    right = b.astype("f4") * np.repeat(np.repeat(sb, 32, 1), 16, 0)
    return [(c, left @ right.T)]


@triton.jit
def gemv_kernel(a, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        part = tl.load(a + rows[:, None] * N + columns[None, :], mask=mask, other=0.0)
        total += tl.sum(part * tl.load(x + columns, mask=columns < N, other=0.0)[None, :], 1)
    tl.store(y + rows, total, mask=rows < M)


@correct
def matrix_times_vector():
    a, x = normal(50, 70), normal(70)
    y = np.empty(50, "f4")
    gemv_kernel[(4,)](a, x, y, 50, 70, BM=16, BN=32)
    return [(y, a @ x)]


@triton.jit
def several_kernel(a, b, c, sizes, starts, tiles, N, K, PROGRAMS: tl.constexpr, B: tl.constexpr, GROUPS: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for group in range(GROUPS):
        rows, start = tl.load(sizes + group), tl.load(starts + group)
        count = tl.load(tiles + group)
        while tile >= before and tile < before + count:
            own = tile - before
            m, n = own // (N // B) * B + tl.arange(0, B), own % (N // B) * B + tl.arange(0, B)
            total = tl.zeros((B, B), tl.float32)
            for k in range(0, K, B):
                ks = k + tl.arange(0, B)
                x = tl.load(a + (start + m)[:, None] * K + ks[None, :], mask=m[:, None] < rows, other=0.0)
                y = tl.load(b + group * K * N + ks[:, None] * N + n[None, :])
                total += tl.dot(x, y)
            tl.store(c + (start + m)[:, None] * N + n[None, :], total, mask=m[:, None] < rows)
            tile += PROGRAMS
        before += count


@correct
def grouped_matmul_of_different_sizes():
    sizes = np.array([20, 0, 37], "i4")
    starts = np.array([0, 20, 20], "i4")
    tiles = -(-sizes // 16) * 2
    a, b = normal(57, 32), normal(3, 32, 32)
    c = np.empty((57, 32), "f4")
    several_kernel[(3,)](a, b, c, sizes, starts, tiles.astype("i4"), 32, 32, PROGRAMS=3, B=16, GROUPS=3)
    group = np.repeat(np.arange(3), sizes)
    return [(c, np.einsum("mk,mkn->mn", a, b[group]))]


@triton.jit
def experts_kernel(x, w, out, order, expert_of, tokens, N, K, TOP: tl.constexpr, B: tl.constexpr):
    block, columns = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
    slot = tl.load(order + block * B + tl.arange(0, B))
    is_real = slot < tokens * TOP
    expert = tl.load(expert_of + block)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        ks = k + tl.arange(0, B)
        left = tl.load(x + (slot // TOP)[:, None] * K + ks[None, :], mask=is_real[:, None], other=0.0)
        total += tl.dot(left, tl.load(w + expert * K * N + ks[:, None] * N + columns[None, :]))
    tl.store(out + slot[:, None] * N + columns[None, :], total, mask=is_real[:, None])


@correct
def mixture_of_experts_over_sorted_tokens():
    random = np.random.default_rng(0)
    tokens, experts, top, block = 21, 3, 2, 16
    chosen = random.integers(0, experts, (tokens, top))
    order, expert_of = [], []
    for expert in range(experts):
        slots = np.flatnonzero(chosen.ravel() == expert)
        padded = np.full(-(-len(slots) // block) * block, tokens * top)
        padded[: len(slots)] = slots
        order.extend(padded)
        expert_of.extend([expert] * (len(padded) // block))
    x, w = normal(tokens, 32), normal(experts, 32, 32)
    out = np.empty((tokens * top, 32), "f4")
    experts_kernel[(len(expert_of), 2)](
        x, w, out, np.array(order, "i4"), np.array(expert_of, "i4"), tokens, 32, 32, TOP=top, B=block
    )
    return [(out, np.einsum("tk,tkn->tn", np.repeat(x, top, 0), w[chosen.ravel()]))]
