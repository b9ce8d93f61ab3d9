"""Partitions of Gluon kernels that hand shared memory to each other by barriers."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code

from __future__ import annotations

import numpy as np
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from tests.kernels.correct.table import correct, normal
from tests.kernels.correct.waiting import copy_lanes, copy_out, matrix

LINE = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
TILE = gl.constexpr(gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))
SLOTS = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))


@gluon.jit
def barriers(COUNT: gl.constexpr, ARRIVALS: gl.constexpr = 1):
    made = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(COUNT):
        mbarrier.init(made.index(k), count=ARRIVALS)
    return made


@gluon.jit
def fills_slots(x, smem, ready, free, steps):
    i = gl.arange(0, 32, layout=LINE)
    for step in range(steps):
        mbarrier.wait(free.index(step % 2), (step // 2 + 1) & 1)
        smem.index(step % 2).store(gl.load(x + step * 32 + i))
        mbarrier.arrive(ready.index(step % 2), count=1)


@gluon.jit
def empties_slots(out, smem, ready, free, steps, factor):
    i = gl.arange(0, 32, layout=LINE)
    for step in range(steps):
        mbarrier.wait(ready.index(step % 2), step // 2 & 1)
        value = smem.index(step % 2).load(LINE)
        mbarrier.arrive(free.index(step % 2), count=1)
        gl.store(out + step * 32 + i, value * factor)


@gluon.jit
def ring_of_two_slots(x, out):
    """The programs take different numbers of steps."""
    smem = gl.allocate_shared_memory(gl.float32, [2, 32], SLOTS)
    ready, free = barriers(2), barriers(2)
    steps = gl.program_id(0) + 3
    x += gl.program_id(0) * 160
    out += gl.program_id(0) * 160
    parts = [(empties_slots, (out, smem, ready, free, steps, 2.0)), (fills_slots, (x, smem, ready, free, steps))]
    gl.warp_specialize(parts, [4], [24])


@correct
def slots_of_a_ring():
    x, out = normal(3, 5, 32), np.zeros((3, 5, 32), "f4")
    ring_of_two_slots[(3,)](x, out)
    expected = x * 2
    for program in range(3):
        expected[program, program + 3 :] = 0
    return [(out, expected)]


@gluon.jit
def ring_with_two_readers(x, out):
    smem = gl.allocate_shared_memory(gl.float32, [2, 32], SLOTS)
    ready, free = barriers(2), barriers(2, 2)
    parts = [
        (fills_slots, (x, smem, ready, free, 5)),
        (empties_slots, (out, smem, ready, free, 5, 2.0)),
        (empties_slots, (out + 160, smem, ready, free, 5, 3.0)),
    ]
    gl.warp_specialize(parts, [4, 4], [24, 24])


@correct
def slots_that_two_partitions_free():
    x, out = normal(5, 32), np.zeros((2, 5, 32), "f4")
    ring_with_two_readers[(1,)](x, out)
    return [(out, np.stack([x * 2, x * 3]))]


@gluon.jit
def stores_first(x, smem, stored):
    smem.store(gl.load(x + gl.arange(0, 32, layout=LINE)))
    mbarrier.arrive(stored, count=1)


@gluon.jit
def passes_on(stored, passed):
    mbarrier.wait(stored, 0)
    mbarrier.arrive(passed, count=1)


@gluon.jit
def reads_last(out, smem, passed):
    mbarrier.wait(passed, 0)
    gl.store(out + gl.arange(0, 32, layout=LINE), smem.load(LINE))


@gluon.jit
def chain_of_three(x, out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    bars = barriers(2)
    parts = [
        (reads_last, (out, smem, bars.index(1))),
        (passes_on, (bars.index(0), bars.index(1))),
        (stores_first, (x, smem, bars.index(0))),
    ]
    gl.warp_specialize(parts, [4, 4], [24, 24])


@correct
def order_that_a_third_partition_passes_on():
    x, out = normal(32), np.zeros(32, "f4")
    chain_of_three[(1,)](x, out)
    return [(out, x)]


@gluon.jit
def stores_a_part(x, part, PLACE: gl.constexpr):
    part.store(gl.load(x + PLACE + gl.arange(0, 16, layout=LINE)))


@gluon.jit
def scatters_even_ones(smem, value):
    i = gl.arange(0, 32, layout=LINE)
    smem.scatter(gl.full([32], 1.0, gl.float32, LINE) * value, i * 2, 0)


@gluon.jit
def scatters_odd_ones(smem, value):
    i = gl.arange(0, 32, layout=LINE)
    smem.scatter(gl.full([32], 1.0, gl.float32, LINE) * value, i * 2 + 1, 0)


@gluon.jit
def disjoint_parts(x, out):
    i = gl.arange(0, 32, layout=LINE)
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    parts = [(stores_a_part, (x, smem.slice(0, 16), 0)), (stores_a_part, (x, smem.slice(16, 16), 16))]
    gl.warp_specialize(parts, [4], [24])
    gl.store(out + i, smem.load(LINE))
    wide = gl.allocate_shared_memory(gl.float32, [64], SHARED)
    gl.warp_specialize([(scatters_even_ones, (wide, 2)), (scatters_odd_ones, (wide, 3))], [4], [24])
    gl.store(out + 32 + i, wide.slice(0, 32).load(LINE))


@correct
def parts_that_are_read_when_the_partitions_have_ended():
    x, out = normal(32), np.zeros(64, "f4")
    disjoint_parts[(1,)](x, out)
    return [(out, np.concatenate([x, np.tile([2.0, 3.0], 16)]))]


@gluon.jit
def copies_by_lanes(x, smem, ready, free, steps):
    i = gl.arange(0, 32, layout=LINE)
    for step in range(steps):
        mbarrier.wait(free.index(step % 2), (step // 2 + 1) & 1)
        copy_lanes(smem.index(step % 2), x + step * 32 + i)
        async_copy.mbarrier_arrive(ready.index(step % 2))
        mbarrier.arrive(ready.index(step % 2), count=1)


@gluon.jit
def ring_of_copies(x, out):
    smem = gl.allocate_shared_memory(gl.float32, [2, 32], SLOTS)
    ready, free = barriers(2), barriers(2)
    parts = [(empties_slots, (out, smem, ready, free, 5, 2.0)), (copies_by_lanes, (x, smem, ready, free, 5))]
    gl.warp_specialize(parts, [4], [24])


@correct
def copies_that_arrive_at_barriers():
    x, out = normal(5, 32), np.zeros((5, 32), "f4")
    ring_of_copies[(1,)](x, out)
    return [(out, x * 2)]


@gluon.jit
def copies_in_groups(x, smem, ready, free, steps):
    """The group before the last one has been waited for when its slot is handed over."""
    i = gl.arange(0, 32, layout=LINE)
    for step in range(steps):
        mbarrier.wait(free.index(step % 2), (step // 2 + 1) & 1)
        copy_lanes(smem.index(step % 2), x + step * 32 + i)
        async_copy.commit_group()
        if step > 0:
            async_copy.wait_group(1)
            mbarrier.arrive(ready.index((step + 1) % 2), count=1)
    async_copy.wait_group(0)
    mbarrier.arrive(ready.index((steps + 1) % 2), count=1)


@gluon.jit
def ring_of_groups(x, out):
    smem = gl.allocate_shared_memory(gl.float32, [2, 32], SLOTS)
    ready, free = barriers(2), barriers(2)
    parts = [(empties_slots, (out, smem, ready, free, 6, 2.0)), (copies_in_groups, (x, smem, ready, free, 6))]
    gl.warp_specialize(parts, [4], [24])


@correct
def groups_that_are_handed_over_when_they_are_there():
    x, out = normal(6, 32), np.zeros((6, 32), "f4")
    ring_of_groups[(1,)](x, out)
    return [(out, x * 2)]


@gluon.jit
def stages_tiles(x, smem, full, sent, steps):
    m = gl.arange(0, 16, layout=gl.SliceLayout(1, TILE))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, TILE))
    for step in range(steps):
        mbarrier.wait(sent, (step + 1) & 1)
        smem.store(gl.load(x + step * 256 + m[:, None] * 16 + n[None, :]) + 1)
        hopper.fence_async_shared()
        mbarrier.arrive(full, count=1)


@gluon.jit
def sends_tiles(target, smem, full, sent, steps):
    for step in range(steps):
        mbarrier.wait(full, step & 1)
        copy_out(target, [step * 16, 0], smem)
        tma.store_wait(pendings=0)
        mbarrier.arrive(sent, count=1)


@gluon.jit
def stores_of_another_partition(x, target):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], target.layout)
    bars = barriers(2)
    full, sent = bars.index(0), bars.index(1)
    parts = [(stages_tiles, (x, smem, full, sent, 4)), (sends_tiles, (target, smem, full, sent, 4))]
    gl.warp_specialize(parts, [1], [24])


@correct
def tiles_that_a_partition_sends():
    x, out = normal(64, 16), np.zeros((64, 16), "f4")
    target = matrix(out)
    stores_of_another_partition[(1,)](x, target)
    return [(target.base, x + 1)]


@gluon.jit
def stores_operands(a, b, x, y, full, free, STEPS: gl.constexpr):
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, TILE))
    n = gl.arange(0, 16, layout=gl.SliceLayout(1, TILE))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, TILE))
    for step in range(STEPS):
        mbarrier.wait(free, (step + 1) & 1)
        x.store(gl.load(a + m[:, None] * 32 * STEPS + step * 32 + k[None, :]))
        y.store(gl.load(b + n[:, None] * 32 * STEPS + step * 32 + k[None, :]))
        hopper.fence_async_shared()
        mbarrier.arrive(full, count=1)


@gluon.jit
def multiplies_tiles(x, y, acc, full, free, done, taken, STEPS: gl.constexpr):
    """Each tile is the sum of two steps."""
    for step in range(STEPS):
        mbarrier.wait(full, step & 1)
        if step % 2 == 0:
            mbarrier.wait(taken, (step // 2 + 1) & 1)
        blackwell.tcgen05_mma(x, y.permute((1, 0)), acc, use_acc=step % 2 == 1)
        blackwell.tcgen05_commit(free)
        if step % 2 == 1:
            blackwell.tcgen05_commit(done)


@gluon.jit
def takes_tiles(c, acc, done, taken, STEPS: gl.constexpr):
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, TILE))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, TILE))
    for tile in range(STEPS // 2):
        mbarrier.wait(done, tile & 1)
        value = acc.load(TILE)
        mbarrier.arrive(taken, count=1)
        gl.store(c + tile * 1024 + m[:, None] * 16 + n[None, :], value)


@gluon.jit
def product_in_three_partitions(a, b, c, STEPS: gl.constexpr):
    x = gl.allocate_shared_memory(gl.float16, [64, 32], gl.NVMMASharedLayout(64, 16, 2))
    y = gl.allocate_shared_memory(gl.float16, [16, 32], gl.NVMMASharedLayout(64, 16, 2))
    acc = blackwell.allocate_tensor_memory(gl.float32, [64, 16], blackwell.TensorMemoryLayout([64, 16], 1))
    bars = barriers(4)
    full, free, done, taken = bars.index(0), bars.index(1), bars.index(2), bars.index(3)
    parts = [
        (takes_tiles, (c, acc, done, taken, STEPS)),
        (stores_operands, (a, b, x, y, full, free, STEPS)),
        (multiplies_tiles, (x, y, acc, full, free, done, taken, STEPS)),
    ]
    gl.warp_specialize(parts, [4, 1], [24, 24])


@correct
def accumulator_that_an_epilogue_takes():
    a, b, c = normal(64, 192, dtype="f2"), normal(16, 192, dtype="f2", seed=1), np.zeros((3, 64, 16), "f4")
    product_in_three_partitions[(1,)](a, b, c, STEPS=6)
    tiles = [a[:, k : k + 64].astype("f4") @ b[:, k : k + 64].T.astype("f4") for k in (0, 64, 128)]
    return [(c, np.stack(tiles))]


@gluon.jit
def takes_turns(smem, own, other, TURN: gl.constexpr):
    for step in range(4):
        mbarrier.wait(own, step & 1)
        smem.store(smem.load(LINE) * 2 + TURN)
        mbarrier.arrive(other, count=1)


@gluon.jit
def turns_with_one_slot(out):
    """The first turn was given before the partitions began."""
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    smem.store(gl.full([32], 1.0, gl.float32, LINE))
    bars = barriers(2)
    mbarrier.arrive(bars.index(0), count=1)
    first, second = bars.index(0), bars.index(1)
    gl.warp_specialize([(takes_turns, (smem, first, second, 0)), (takes_turns, (smem, second, first, 1))], [4], [24])
    gl.store(out + gl.arange(0, 32, layout=LINE), smem.load(LINE))


@correct
def memory_that_partitions_change_in_turns():
    out = np.zeros(32, "f4")
    turns_with_one_slot[(1,)](out)
    value = 1.0
    for turn in range(8):
        value = value * 2 + turn % 2
    return [(out, np.full(32, value))]


@gluon.jit
def stores_operands_in_slots(a, b, x, y, full, free, STEPS: gl.constexpr):
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, TILE))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, TILE))
    k = gl.arange(0, 32, layout=gl.SliceLayout(0, TILE))
    down = gl.arange(0, 32, layout=gl.SliceLayout(1, TILE))
    for step in range(STEPS):
        slot = step % 3
        mbarrier.wait(free.index(slot), (step // 3 + 1) & 1)
        x.index(slot).store(gl.load(a + m[:, None] * 32 * STEPS + step * 32 + k[None, :]))
        y.index(slot).store(gl.load(b + (step * 32 + down)[:, None] * 16 + n[None, :]))
        hopper.fence_async_shared()
        mbarrier.arrive(full.index(slot), count=1)


@gluon.jit
def multiplies_slots(c, x, y, full, free, STEPS: gl.constexpr):
    """A slot is freed while the product of the next one is under way."""
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, TILE))
    n = gl.arange(0, 16, layout=gl.SliceLayout(0, TILE))
    acc = gl.full([64, 16], 0.0, gl.float32, TILE)
    for step in range(STEPS):
        mbarrier.wait(full.index(step % 3), step // 3 & 1)
        acc = hopper.warpgroup_mma(x.index(step % 3), y.index(step % 3), acc, is_async=True)
        acc = hopper.warpgroup_mma_wait(1, deps=[acc])
        if step > 0:
            mbarrier.arrive(free.index((step - 1) % 3), count=1)
    acc = hopper.warpgroup_mma_wait(0, deps=[acc])
    gl.store(c + m[:, None] * 16 + n[None, :], acc)


@gluon.jit
def products_behind_a_producer(a, b, c, STEPS: gl.constexpr):
    shared: gl.constexpr = gl.NVMMASharedLayout(64, 16, 3)
    x = gl.allocate_shared_memory(gl.float16, [3, 64, 32], shared)
    y = gl.allocate_shared_memory(gl.float16, [3, 32, 16], shared)
    full, free = barriers(3), barriers(3)
    parts = [
        (multiplies_slots, (c, x, y, full, free, STEPS)),
        (stores_operands_in_slots, (a, b, x, y, full, free, STEPS)),
    ]
    gl.warp_specialize(parts, [4], [24])


@correct
def slots_that_are_freed_one_product_behind():
    a, b, c = normal(64, 224, dtype="f2"), normal(224, 16, dtype="f2", seed=1), np.zeros((64, 16), "f4")
    products_behind_a_producer[(1,)](a, b, c, STEPS=7)
    return [(c, a.astype("f4") @ b.astype("f4"))]
