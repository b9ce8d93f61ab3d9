"""Partitions of Gluon kernels that access the same shared memory in no order."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from tests.kernels.planted.table import bug, floats
from tests.kernels.planted.waits import copy_in, matrix

LINE = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))


@gluon.jit
def barriers(COUNT: gl.constexpr, arrivals: gl.constexpr = 1):
    made = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(COUNT):
        mbarrier.init(made.index(k), count=arrivals)
    return made


@gluon.jit
def ones_stored(smem, bar, value):
    smem.store(gl.full([32], 1.0, gl.float32, LINE) * value)
    mbarrier.arrive(bar, count=1)


@gluon.jit
def stored_out(smem, out):
    gl.store(out + gl.arange(0, 32, layout=LINE), smem.load(LINE))


@gluon.jit
def reads_without_a_wait(smem, bar, out):
    value = smem.load(LINE)  # bug
    mbarrier.wait(bar, 0)
    gl.store(out + gl.arange(0, 32, layout=LINE), value)


@bug("missing-barrier", floats(3, 32), grid=(3,), programs={0, 1, 2}, within=reads_without_a_wait)
@gluon.jit
def partition_that_waits_too_late(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    bar = barriers(1).index(0)
    out += gl.program_id(0) * 32
    gl.warp_specialize([(ones_stored, (smem, bar, 2)), (reads_without_a_wait, (smem, bar, out))], [4], [24])


@gluon.jit
def arrives_before_it_stores(smem, bar):
    mbarrier.arrive(bar, count=1)
    smem.store(gl.full([32], 1.0, gl.float32, LINE))


@gluon.jit
def waits_and_reads(smem, bar, out):
    mbarrier.wait(bar, 0)
    gl.store(out + gl.arange(0, 32, layout=LINE), smem.load(LINE))  # bug


@bug("missing-barrier", floats(32), grid=(1,), programs={0}, within=waits_and_reads)
@gluon.jit
def partition_that_arrives_too_early(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    bar = barriers(1).index(0)
    gl.warp_specialize([(arrives_before_it_stores, (smem, bar)), (waits_and_reads, (smem, bar, out))], [4], [24])


@gluon.jit
def stores_three(smem, ready):
    for step in range(3):
        smem.store(gl.full([32], 1.0, gl.float32, LINE) * step)
        mbarrier.arrive(ready, count=1)


@gluon.jit
def reads_three(smem, ready, out):
    for step in range(3):
        mbarrier.wait(ready, step & 1)
        gl.store(out + step * 32 + gl.arange(0, 32, layout=LINE), smem.load(LINE))  # bug


@bug("missing-barrier", floats(96), grid=(1,), programs={0}, within=reads_three)
@gluon.jit
def slot_that_nobody_frees(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    ready = barriers(1).index(0)
    gl.warp_specialize([(stores_three, (smem, ready)), (reads_three, (smem, ready, out))], [4], [24])


@gluon.jit
def stores_what_is_free(smem, ready, free, steps):
    for step in range(steps):
        mbarrier.wait(free, (step + 1) & 1)
        smem.store(gl.full([32], 1.0, gl.float32, LINE) * step)  # bug
        mbarrier.arrive(ready, count=1)


@gluon.jit
def frees_before_it_reads(smem, ready, free, out, steps):
    for step in range(steps):
        mbarrier.wait(ready, step & 1)
        mbarrier.arrive(free, count=1)
        gl.store(out + step * 32 + gl.arange(0, 32, layout=LINE), smem.load(LINE))


@bug("missing-barrier", floats(96), grid=(1,), programs={0}, within=stores_what_is_free)
@gluon.jit
def slot_that_is_freed_before_it_is_read(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    bars = barriers(2)
    ready, free = bars.index(0), bars.index(1)
    parts = [(frees_before_it_reads, (smem, ready, free, out, 3)), (stores_what_is_free, (smem, ready, free, 3))]
    gl.warp_specialize(parts, [4], [24])


@gluon.jit
def loads_a_tile(source, smem, bar):
    mbarrier.expect(bar, 16 * 16 * 4)
    copy_in(source, [0, 0], bar, smem)


@gluon.jit
def waits_for_a_tile(smem, bar, told, out):
    mbarrier.arrive(told, count=1)
    mbarrier.wait(bar, 0)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    gl.store(out + gl.arange(0, 16, layout=gl.SliceLayout(0, layout)), gl.sum(smem.load(layout), 0))


@gluon.jit
def is_told_too_early(smem, told, out):
    mbarrier.wait(told, 0)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    value = smem.load(layout)  # bug
    gl.store(out + gl.arange(0, 16, layout=gl.SliceLayout(0, layout)), gl.max(value, 0))


@bug("missing-barrier", matrix, floats(32), grid=(1,), programs={0}, within=is_told_too_early)
@gluon.jit
def tile_that_one_of_two_partitions_waits_for(source, out):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bars = barriers(2)
    bar, told = bars.index(0), bars.index(1)
    parts = [
        (loads_a_tile, (source, smem, bar)),
        (waits_for_a_tile, (smem, bar, told, out)),
        (is_told_too_early, (smem, told, out + 16)),
    ]
    gl.warp_specialize(parts, [4, 4], [24, 24])


@gluon.jit
def stages_first(smem, bar):
    ones_stored(smem, bar, 1)


@gluon.jit
def stages_second(smem, bar):
    smem.store(gl.full([32], 2.0, gl.float32, LINE))  # bug
    mbarrier.arrive(bar, count=1)


@gluon.jit
def reads_what_is_staged(smem, bars, out):
    mbarrier.wait(bars.index(0), 0)
    mbarrier.wait(bars.index(1), 0)
    stored_out(smem, out)


@bug("missing-barrier", floats(32), grid=(1,), programs={0}, within=stages_second)
@gluon.jit
def partitions_that_stage_in_the_same_place(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    bars = barriers(2)
    parts = [
        (reads_what_is_staged, (smem, bars, out)),
        (stages_first, (smem, bars.index(0))),
        (stages_second, (smem, bars.index(1))),
    ]
    gl.warp_specialize(parts, [4, 4], [24, 24])


@gluon.jit
def fills_two_slots(smem, ready):
    for k in gl.static_range(2):
        ones_stored(smem.index(k), ready.index(k), k)


@gluon.jit
def waits_for_the_other_slot(smem, ready, out):
    mbarrier.wait(ready.index(0), 0)
    gl.store(out + gl.arange(0, 32, layout=LINE), smem.index(1).load(LINE))  # bug


@bug("missing-barrier", floats(32), grid=(1,), programs={0}, within=waits_for_the_other_slot)
@gluon.jit
def slot_whose_neighbour_is_waited_for(out):
    smem = gl.allocate_shared_memory(gl.float32, [2, 32], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    ready = barriers(2)
    gl.warp_specialize([(fills_two_slots, (smem, ready)), (waits_for_the_other_slot, (smem, ready, out))], [4], [24])


@gluon.jit
def stores_the_second_half(smem, bar):
    smem.slice(16, 16).store(gl.full([16], 2.0, gl.float32, LINE))  # bug
    mbarrier.arrive(bar, count=1)


@gluon.jit
def stores_the_first_half(smem, bar):
    smem.slice(0, 16).store(gl.full([16], 1.0, gl.float32, LINE))
    mbarrier.arrive(bar, count=1)


@gluon.jit
def reads_both_halves(smem, bar, out):
    mbarrier.wait(bar, 0)
    stored_out(smem, out)


@bug("missing-barrier", floats(32), grid=(1,), programs={0}, within=stores_the_second_half)
@gluon.jit
def barrier_of_one_arrival_for_two_partitions(out):
    smem = gl.allocate_shared_memory(gl.float32, [32], SHARED)
    smem.store(gl.full([32], 0.0, gl.float32, LINE))
    bar = barriers(1).index(0)
    parts = [
        (stores_the_first_half, (smem, bar)),
        (reads_both_halves, (smem, bar, out)),
        (stores_the_second_half, (smem, bar)),
    ]
    gl.warp_specialize(parts, [4, 4], [24, 24])
