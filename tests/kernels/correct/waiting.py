"""Gluon kernels whose copies and products run beside them, and that wait for each before its result is used."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code

from __future__ import annotations

import numpy as np
import pytest
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from tests.kernels.correct.table import correct, normal

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
copy_out = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
copy_lanes = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared


def matrix(values):
    """A host's descriptor of a matrix of float32 with 16 columns, in tiles of 16 x 16."""
    torch = pytest.importorskip("torch")
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    layout = gl.NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=32, rank=2)
    return TensorDescriptor(torch.from_numpy(values), list(values.shape), [16, 1], [16, 16], layout)


@gluon.jit
def two_slots(source, target, steps):
    """The next tile is loaded while one is stored; a slot is loaded again when its store has been read."""
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    smem = gl.allocate_shared_memory(gl.float32, [2, 16, 16], source.layout)
    for k in gl.static_range(2):
        mbarrier.init(ready.index(k), count=1)
    mbarrier.expect(ready.index(0), 16 * 16 * 4)
    copy_in(source, [0, 0], ready.index(0), smem.index(0))
    for step in range(steps):
        following = step + 1
        tma.store_wait(pendings=0)
        is_left = following < steps
        mbarrier.expect(ready.index(following % 2), 16 * 16 * 4, pred=is_left)
        copy_in(source, [following * 16, 0], ready.index(following % 2), smem.index(following % 2), pred=is_left)
        mbarrier.wait(ready.index(step % 2), step // 2 & 1)
        copy_out(target, [step * 16, 0], smem.index(step % 2))
    tma.store_wait(pendings=0)


@correct
def tiles_through_two_slots():
    x, y = normal(80, 16), np.zeros((80, 16), "f4")
    two_slots[(1,)](matrix(x), matrix(y), 5)
    return [(y, x)]


@gluon.jit
def stores_behind(target, steps, BLOCK: gl.constexpr):
    """One store may still be under way while the other slot is written."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    smem = gl.allocate_shared_memory(gl.float32, [2, BLOCK, BLOCK], target.layout)
    for step in range(steps):
        tma.store_wait(pendings=1)
        smem.index(step % 2).store(gl.full([BLOCK, BLOCK], 1.0, gl.float32, layout) * step)
        hopper.fence_async_shared()
        copy_out(target, [step * BLOCK, 0], smem.index(step % 2))
    tma.store_wait(pendings=0)


@correct
def stores_with_one_under_way():
    y = np.full((64, 16), -1, "f4")
    stores_behind[(1,)](matrix(y), 4, BLOCK=16)
    return [(y, np.repeat(np.arange(4), 16)[:, None] * np.ones(16))]


@gluon.jit
def barrier_of_lanes(x, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem, x + i)
    async_copy.mbarrier_arrive(bar)
    mbarrier.arrive(bar, count=1)
    mbarrier.wait(bar, 0)
    gl.store(out + i, smem.load(layout))


@correct
def lanes_that_complete_a_barrier():
    x, out = normal(64), np.zeros(64, "f4")
    barrier_of_lanes[(1,)](x, out, BLOCK=64)
    return [(out, x)]


@gluon.jit
def one_product_behind(a, b, c, steps, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """Operands have two slots: one is overwritten while the product of the other is under way."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, K, layout=gl.SliceLayout(1, layout))
    x = gl.allocate_shared_memory(gl.float16, [2, M, K], shared)
    y = gl.allocate_shared_memory(gl.float16, [2, K, N], shared)
    acc = gl.full([M, N], 0.0, gl.float32, layout)
    for step in range(steps):
        start = step * K
        x.index(step % 2).store(gl.load(a + m[:, None] * steps * K + start + k[None, :]))
        y.index(step % 2).store(gl.load(b + (start + down)[:, None] * N + n[None, :]))
        hopper.fence_async_shared()
        acc = hopper.warpgroup_mma(x.index(step % 2), y.index(step % 2), acc, is_async=True)
        acc = hopper.warpgroup_mma_wait(1, deps=[acc])
    acc = hopper.warpgroup_mma_wait(0, deps=[acc])
    gl.store(c + m[:, None] * N + n[None, :], acc)


@correct
def products_with_one_under_way():
    a, b, c = normal(64, 128, dtype="f2"), normal(128, 16, dtype="f2"), np.zeros((64, 16), "f4")
    one_product_behind[(1,)](a, b, c, 4, M=64, N=16, K=32)
    return [(c, a.astype("f4") @ b.astype("f4"))]


@gluon.jit
def loader(source, smem, ready, empty, steps):
    for step in range(steps):
        mbarrier.wait(empty.index(step % 2), (step // 2 + 1) & 1)
        mbarrier.expect(ready.index(step % 2), 16 * 16 * 4)
        copy_in(source, [step * 16, 0], ready.index(step % 2), smem.index(step % 2))


@gluon.jit
def adder(out, smem, ready, empty, steps):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    place = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))[:, None] * 16
    place += gl.arange(0, 16, layout=gl.SliceLayout(0, layout))[None, :]
    for step in range(steps):
        mbarrier.wait(ready.index(step % 2), step // 2 & 1)
        value = smem.index(step % 2).load(layout)
        mbarrier.arrive(empty.index(step % 2), count=1)
        gl.store(out + step * 256 + place, value + 1)


@gluon.jit
def loaded_by_a_partition(source, out, steps):
    smem = gl.allocate_shared_memory(gl.float32, [2, 16, 16], source.layout)
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(2):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    parts = [(adder, (out, smem, ready, empty, steps)), (loader, (source, smem, ready, empty, steps))]
    gl.warp_specialize(parts, [1], [24])


@correct
def tiles_that_a_partition_loads():
    x, out = normal(80, 16), np.zeros((80, 16), "f4")
    loaded_by_a_partition[(1,)](matrix(x), out, 5)
    return [(out, x + 1)]


@gluon.jit
def tensor_products_in_a_row(a, b, c, steps, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """Products of one accumulator need no wait between them; the slots of their operands do."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    m = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, N, layout=gl.SliceLayout(1, layout))
    acc = blackwell.allocate_tensor_memory(gl.float32, [M, N], blackwell.TensorMemoryLayout([M, N], col_stride=1))
    x = gl.allocate_shared_memory(gl.float16, [2, M, K], shared)
    y = gl.allocate_shared_memory(gl.float16, [2, N, K], shared)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    for step in range(steps):
        mbarrier.wait(bars.index(step % 2), (step // 2 + 1) & 1)
        x.index(step % 2).store(gl.load(a + m[:, None] * K * steps + step * K + k[None, :]))
        y.index(step % 2).store(gl.load(b + down[:, None] * K * steps + step * K + k[None, :]))
        hopper.fence_async_shared()
        blackwell.tcgen05_mma(x.index(step % 2), y.index(step % 2).permute((1, 0)), acc, use_acc=step > 0)
        blackwell.tcgen05_commit(bars.index(step % 2))
    for i in gl.static_range(2):
        mbarrier.wait(bars.index(i), ((steps - 1 - i) // 2) & 1)
    gl.store(c + m[:, None] * N + n[None, :], acc.load(layout))


@correct
def tensor_products_with_two_slots():
    a, b, c = normal(64, 128, dtype="f2"), normal(16, 128, dtype="f2", seed=1), np.zeros((64, 16), "f4")
    tensor_products_in_a_row[(1,)](a, b, c, 4, M=64, N=16, K=32)
    return [(c, a.astype("f4") @ b.T.astype("f4"))]


@gluon.jit
def multiplies_copies(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """Lanes that async_copy brings need no fence, nor does what tensor memory holds."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    m = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, K, layout=gl.SliceLayout(1, layout))
    y = gl.allocate_shared_memory(gl.float16, [K, N], shared)
    copy_lanes(y, b + down[:, None] * N + n[None, :])
    async_copy.commit_group()
    x = blackwell.allocate_tensor_memory(gl.float16, [M, K], blackwell.TensorMemoryLayout([M, K], col_stride=1))
    x.store(gl.load(a + m[:, None] * K + k[None, :]))
    acc = blackwell.allocate_tensor_memory(gl.float32, [M, N], blackwell.TensorMemoryLayout([M, N], col_stride=1))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    async_copy.wait_group(0)
    blackwell.tcgen05_mma(x, y, acc, use_acc=False)
    blackwell.tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    gl.store(c + m[:, None] * N + n[None, :], acc.load(layout))


@correct
def copies_and_tensor_memory_without_a_fence():
    a, b, c = normal(64, 32, dtype="f2"), normal(32, 16, dtype="f2"), np.zeros((64, 16), "f4")
    multiplies_copies[(1,)](a, b, c, M=64, N=16, K=32)
    return [(c, a.astype("f4") @ b.astype("f4"))]
