"""Planted copies and products of Gluon kernels that are not waited for, and phases that nobody completes."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code

from __future__ import annotations

import numpy as np
import pytest
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from tests.kernels.planted.table import bug, floats

__all__ = ["copy_in", "copy_lanes", "copy_out", "halves", "matrix"]

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
copy_out = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
copy_lanes = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared


def matrix():
    """A host's descriptor of a matrix of float32, in tiles of 16 x 16."""
    torch = pytest.importorskip("torch")
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    layout = gl.NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=32, rank=2)
    return TensorDescriptor(torch.ones((64, 16)), [64, 16], [16, 1], [16, 16], layout)


def halves(rows, columns):
    """Ones of float16."""
    return lambda: np.ones((rows, columns), "f2")


@bug("missing-wait", floats(64), floats(32), grid=(1,), programs={0}, BLOCK=32)
@gluon.jit
def reads_a_copy_at_once(x, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem, x + i)
    async_copy.commit_group()
    gl.store(out + i, smem.load(layout))  # bug


@bug("missing-wait", floats(128), floats(96), grid=(1,), programs={0}, BLOCK=32)
@gluon.jit
def waits_for_one_group_too_few(x, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem.index(0), x + i)
    async_copy.commit_group()
    for step in range(3):
        copy_lanes(smem.index((step + 1) % 2), x + (step + 1) * BLOCK + i)
        async_copy.commit_group()
        async_copy.wait_group(2)
        gl.store(out + step * BLOCK + i, smem.index(step % 2).load(layout))  # bug


@bug("missing-wait", floats(64), floats(32), grid=(1,), programs={0}, BLOCK=32)
@gluon.jit
def copy_that_is_in_no_group(x, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem, x + i)
    async_copy.wait_group(0)
    gl.store(out + i, smem.load(layout))  # bug


@bug("missing-wait", floats(128), floats(64), grid=(1,), programs={0}, BLOCK=32)
@gluon.jit
def copies_into_what_was_not_read(x, out, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem, x + i)
    async_copy.commit_group()
    copy_lanes(smem, x + BLOCK + i)  # bug
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(out + i, smem.load(layout))


@bug("missing-wait", matrix, floats(16, 16), grid=(1,), programs={0})
@gluon.jit
def reads_a_tile_at_once(source, out):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 16 * 16 * 4)
    copy_in(source, [0, 0], bar, smem)
    place = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))[:, None] * 16
    value = smem.load(layout)  # bug
    mbarrier.wait(bar, 0)
    gl.store(out + place + gl.arange(0, 16, layout=gl.SliceLayout(0, layout))[None, :], value)


@bug("missing-wait", matrix, matrix, grid=(1,), programs={0})
@gluon.jit
def loads_over_a_store(source, target):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    for step in range(2):
        mbarrier.expect(bar, 16 * 16 * 4)
        copy_in(source, [step * 16, 0], bar, smem)  # bug
        mbarrier.wait(bar, step & 1)
        copy_out(target, [step * 16, 0], smem)
    tma.store_wait(pendings=0)


@bug("missing-wait", matrix, grid=(1,))
@gluon.jit
def ends_before_its_store(target):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], target.layout)
    smem.store(gl.full([16, 16], 1.0, gl.float32, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])))
    hopper.fence_async_shared()
    copy_out(target, [0, 0], smem)  # bug


@bug("kernel-fault", matrix, grid=(1,))
@gluon.jit
def waits_for_the_phase_after(source):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    for step in range(2):
        mbarrier.expect(bar, 16 * 16 * 4)
        copy_in(source, [step * 16, 0], bar, smem)
        mbarrier.wait(bar, 0)  # bug
        smem.load(gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))


@bug("kernel-fault", matrix, grid=(1,))
@gluon.jit
def announces_too_many_bytes(source):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 16 * 16 * 8)
    copy_in(source, [0, 0], bar, smem)
    mbarrier.wait(bar, 0)  # bug


@bug("missing-wait", halves(64, 32), halves(32, 16), floats(64, 16), tensor="", grid=(1,), programs={0})
@gluon.jit
def stores_an_unfinished_product(a, b, c):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
    x = gl.allocate_shared_memory(gl.float16, [64, 32], shared, gl.load(a + m[:, None] * 32 + k[None, :]))
    y = gl.allocate_shared_memory(gl.float16, [32, 16], shared, gl.load(b + down[:, None] * 16 + n[None, :]))
    acc = gl.full([64, 16], 0.0, gl.float32, layout)
    acc = hopper.warpgroup_mma(x, y, acc, is_async=True)
    gl.store(c + m[:, None] * 16 + n[None, :], acc)  # bug


@bug("missing-wait", halves(64, 64), halves(32, 16), floats(64, 16), tensor="", grid=(1,), programs={0})
@gluon.jit
def overwrites_an_operand_of_a_product(a, b, c):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
    x = gl.allocate_shared_memory(gl.float16, [64, 32], shared)
    y = gl.allocate_shared_memory(gl.float16, [32, 16], shared, gl.load(b + down[:, None] * 16 + n[None, :]))
    acc = gl.full([64, 16], 0.0, gl.float32, layout)
    for step in range(2):
        x.store(gl.load(a + m[:, None] * 64 + step * 32 + k[None, :]))  # bug
        hopper.fence_async_shared()
        acc = hopper.warpgroup_mma(x, y, acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(0, deps=[acc])
    gl.store(c + m[:, None] * 16 + n[None, :], acc)


@bug("missing-wait", halves(64, 32), halves(16, 32), floats(64, 16), tensor="", grid=(1,), programs={0})
@gluon.jit
def reads_tensor_memory_at_once(a, b, c):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 32], gl.float16)
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))
    acc = blackwell.allocate_tensor_memory(gl.float32, [64, 16], blackwell.TensorMemoryLayout([64, 16], col_stride=1))
    x = gl.allocate_shared_memory(gl.float16, [64, 32], shared, gl.load(a + m[:, None] * 32 + k[None, :]))
    y = gl.allocate_shared_memory(gl.float16, [16, 32], shared, gl.load(b + down[:, None] * 32 + k[None, :]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    blackwell.tcgen05_mma(x, y.permute((1, 0)), acc, use_acc=False)
    blackwell.tcgen05_commit(bar)
    gl.store(c + m[:, None] * 16 + n[None, :], acc.load(layout))  # bug


@bug("missing-wait", halves(64, 32), halves(16, 32), floats(64, 16), tensor="", grid=(1,), programs={0})
@gluon.jit
def overwrites_an_operand_in_tensor_products(a, b, c):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 32], gl.float16)
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))
    acc = blackwell.allocate_tensor_memory(gl.float32, [64, 16], blackwell.TensorMemoryLayout([64, 16], col_stride=1))
    x = gl.allocate_shared_memory(gl.float16, [64, 32], shared)
    y = gl.allocate_shared_memory(gl.float16, [16, 32], shared, gl.load(b + down[:, None] * 32 + k[None, :]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    for step in range(2):
        x.store(gl.load(a + m[:, None] * 32 + k[None, :]))  # bug
        blackwell.tcgen05_mma(x, y.permute((1, 0)), acc, use_acc=step > 0)
    blackwell.tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    gl.store(c + m[:, None] * 16 + n[None, :], acc.load(layout))


@bug("missing-fence", matrix, grid=(2,), programs={0, 1})
@gluon.jit
def stores_without_a_fence(target):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], target.layout)
    smem.store(gl.full([16, 16], 1.0, gl.float32, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])))
    copy_out(target, [gl.program_id(0) * 16, 0], smem)  # bug
    tma.store_wait(pendings=0)


@bug("missing-fence", matrix, grid=(1,), programs={0})
@gluon.jit
def fences_before_the_last_write(target):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], target.layout, gl.full([16, 16], 1.0, gl.float32, layout))
    hopper.fence_async_shared()
    for step in range(2):
        copy_out(target, [step * 16, 0], smem)  # bug
        tma.store_wait(pendings=0)
        smem.store(gl.full([16, 16], 2.0, gl.float32, layout))


@bug("missing-fence", halves(64, 32), halves(32, 16), floats(64, 16), grid=(1,), programs={0})
@gluon.jit
def multiplies_without_a_fence(a, b, c):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
    x = gl.allocate_shared_memory(gl.float16, [64, 32], shared, gl.load(a + m[:, None] * 32 + k[None, :]))
    hopper.fence_async_shared()
    y = gl.allocate_shared_memory(gl.float16, [32, 16], shared, gl.load(b + down[:, None] * 16 + n[None, :]))
    acc = hopper.warpgroup_mma(x, y, gl.full([64, 16], 0.0, gl.float32, layout))  # bug
    gl.store(c + m[:, None] * 16 + n[None, :], acc)
