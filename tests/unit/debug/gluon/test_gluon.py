# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code
"""Gluon kernels give what the same computation gives in NumPy; what they get wrong in waiting is found."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault, Unsupported

pytest.importorskip("triton")
gluon = pytest.importorskip("triton.experimental.gluon")
from triton.experimental.gluon import language as gl  # noqa: E402

if not hasattr(gl, "num_warps"):
    pytest.skip("this Triton has an earlier Gluon", allow_module_level=True)

from triton.experimental.gluon.language.nvidia import ampere, blackwell, hopper  # noqa: E402
from triton.experimental.gluon.language.nvidia.ampere import async_copy  # noqa: E402
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma  # noqa: E402
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor  # noqa: E402

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
copy_out = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
copy_lanes = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared


def run(kernel: Any, programs: int, *arguments: Any, **named: Any) -> None:
    bragg.debug.interpret(kernel)[(programs,)](*arguments, **named)


@gluon.jit
def add_by_layout(x, y, out, n, BLOCK: gl.constexpr, WARPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = i < n
    total = gl.load(x + i, mask=mask, other=0) + gl.load(y + i, mask=mask, other=0)
    total = gl.convert_layout(total, gl.BlockedLayout([2], [32], [WARPS], [0]))
    gl.store(out + i, total * gl.num_warps(), mask=mask)


def test_elementwise_kernel_with_layouts() -> None:
    x, y, out = np.arange(100, dtype="f4"), np.ones(100, "f4"), np.zeros(100, "f4")
    run(add_by_layout, 4, x, y, out, 100, BLOCK=32, WARPS=8, num_warps=8)
    assert (out == (x + y) * 8).all()


@gluon.jit
def transposed_row_sums(x, out, total, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    pid = gl.program_id(0)
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    block = gl.load(x + pid * M * N + rows[:, None] * N + columns[None, :])
    smem = gl.allocate_shared_memory(gl.float32, [2, M, N], shared)
    smem.index(pid % 2).store(block)
    turned = smem.index(pid % 2).permute([1, 0]).load(layout)
    gl.store(out + pid * M * N + columns[:, None] * M + rows[None, :], turned)
    part = smem.index(pid % 2).slice(0, M // 2, dim=0).load(layout)
    gl.store(total + pid, gl.sum(gl.sum(part, axis=1), axis=0))


def test_shared_memory_is_indexed_permuted_and_sliced() -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 8, 16)).astype("f4")
    out, total = np.zeros((3, 16, 8), "f4"), np.zeros(3, "f4")
    run(transposed_row_sums, 3, x, out, total, M=8, N=16)
    assert (out == x.transpose(0, 2, 1)).all()
    assert (total == x[:, :4].sum((1, 2))).all()


@gluon.jit
def outside(x, INDEX: gl.constexpr):
    smem = gl.allocate_shared_memory(gl.float32, [2, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    gl.store(x, gl.sum(smem.index(INDEX).load(gl.BlockedLayout([1], [32], [4], [0])), axis=0))


def test_index_outside_of_shared_memory_is_a_fault() -> None:
    with pytest.raises(KernelFault, match=r"test_gluon.py:\d+: index 2 of memory of shape \[2, 4\]"):
        run(outside, 1, np.zeros(1, "f4"), INDEX=2)


def test_shared_memory_that_was_never_written_is_reported() -> None:
    with bragg.debug.check() as report:
        run(outside, 1, np.zeros(1, "f4"), INDEX=1)
    assert any("shared memory is read before it is written" in line for line in report.lines())


@gluon.jit
def copied_in_turns(x, out, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    smem = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, BLOCK, layout=layout)
    copy_lanes(smem.index(0), x + i, mask=i < n)
    async_copy.commit_group()
    for step in range(3):
        start = (step + 1) * BLOCK
        copy_lanes(smem.index((step + 1) % 2), x + start + i, mask=start + i < n)
        async_copy.commit_group()
        async_copy.wait_group(1)
        gl.store(out + step * BLOCK + i, smem.index(step % 2).load(layout) * 2)


def test_asynchronous_copies_with_two_buffers() -> None:
    x, out = np.arange(1, 81, dtype="f4"), np.full(96, -1, "f4")
    run(copied_in_turns, 1, x, out, 80, BLOCK=32)
    assert out.tolist() == (np.pad(x, (0, 16)) * 2).tolist()


def line_of(kernel: Any, text: str) -> int:
    """The first line of a kernel with a text."""
    source, first = inspect.getsourcelines(kernel.fn)
    return first + next(place for place, line in enumerate(source) if text in line)


@gluon.jit
def through_descriptors(source, target, steps, BLOCK: gl.constexpr, FORGETS: gl.constexpr):
    smem = gl.allocate_shared_memory(source.dtype, [BLOCK, BLOCK], source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    phase = 0
    for step in range(steps):
        if not FORGETS:
            mbarrier.expect(bar, BLOCK * BLOCK * 4)
        copy_in(source, [step * BLOCK, 0], bar, smem)
        mbarrier.wait(bar, phase)
        phase ^= 1
        hopper.fence_async_shared()
        copy_out(target, [step * BLOCK, 0], smem)
        tma.store_wait(pendings=0)
    mbarrier.invalidate(bar)


def descriptors(n: int) -> tuple[Any, Any, Any, Any]:
    torch = pytest.importorskip("torch")
    layout = gl.NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=32, rank=2)
    x, y = torch.arange(n * 16, dtype=torch.float32).reshape(n, 16), torch.zeros((n, 16))
    made = [TensorDescriptor(one, list(one.shape), list(one.stride()), [16, 16], layout) for one in (x, y)]
    return x, y, *made


def test_copies_by_descriptors_complete_phases_of_a_barrier() -> None:
    x, y, source, target = descriptors(40)
    run(through_descriptors, 1, source, target, 3, BLOCK=16, FORGETS=False)
    assert (x == y).all()


def test_barrier_without_announced_bytes_is_a_deadlock() -> None:
    *_, source, target = descriptors(16)
    with pytest.raises(KernelFault) as raised:
        run(through_descriptors, 1, source, target, 1, BLOCK=16, FORGETS=True)
    waits, begins, comes = (line_of(through_descriptors, text) for text in ("wait(", "init(", "copy_in("))
    expected = (
        f"test_gluon.py:{waits}: deadlock: nobody completes what is waited for: bar is waited for with parity 0, and"
        f" its phase 0 is under way; it lacks 1 arrival and -1024 bytes; initialised in line {begins} of test_gluon.py;"
        f" arrived at last in line {comes} of test_gluon.py"
    )
    assert expected in str(raised.value)


@gluon.jit
def product(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    down = gl.arange(0, K, layout=gl.SliceLayout(1, layout))
    x = gl.allocate_shared_memory(gl.float16, [M, K], shared, gl.load(a + m[:, None] * K + k[None, :]))
    y = gl.allocate_shared_memory(gl.float16, [K, N], shared, gl.load(b + down[:, None] * N + n[None, :]))
    acc = gl.full([M, N], 5.0, gl.float32, layout)
    acc = hopper.warpgroup_mma(x, y, acc, use_acc=False, is_async=True)
    acc = hopper.warpgroup_mma_wait(0, deps=[acc])
    acc = ampere.mma_v2(x.load(layout), y.load(layout), acc)
    gl.store(c + m[:, None] * N + n[None, :], acc)


def test_products_of_tensor_cores() -> None:
    random = np.random.default_rng(0)
    a, b, c = random.standard_normal((64, 32)).astype("f2"), random.standard_normal((32, 16)).astype("f2"), None
    c = np.zeros((64, 16), "f4")
    run(product, 1, a, b, c, M=64, N=16, K=32)
    np.testing.assert_allclose(c, 2 * (a.astype("f4") @ b.astype("f4")), rtol=1e-5, atol=1e-4)


@gluon.jit
def product_in_tensor_memory(a, b, c, steps, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    m = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    k = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    acc = blackwell.allocate_tensor_memory(gl.float32, [M, N], blackwell.TensorMemoryLayout([M, N], col_stride=1))
    x = gl.allocate_shared_memory(gl.float16, [M, K], shared)
    y = gl.allocate_shared_memory(gl.float16, [N, K], shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    use_acc = False
    for step in range(steps):
        x.store(gl.load(a + m[:, None] * K * steps + step * K + k[None, :]))
        y.store(
            gl.load(b + gl.arange(0, N, layout=gl.SliceLayout(1, layout))[:, None] * K * steps + step * K + k[None, :])
        )
        blackwell.fence_async_shared()
        blackwell.tcgen05_mma(x, y.permute((1, 0)), acc, use_acc=use_acc)
        blackwell.tcgen05_commit(bar)
        mbarrier.wait(bar, step & 1)
        use_acc = True
    gl.store(c + m[:, None] * N + n[None, :], acc.load(layout))


def test_products_in_tensor_memory_accumulate_and_arrive() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((64, 96)).astype("f2"), random.standard_normal((16, 96)).astype("f2")
    c = np.zeros((64, 16), "f4")
    with bragg.debug.check() as report:
        run(product_in_tensor_memory, 1, a, b, c, 3, M=64, N=16, K=32)
    np.testing.assert_allclose(c, a.astype("f4") @ b.T.astype("f4"), rtol=1e-5, atol=1e-4)
    assert report.lines()[-1].startswith("no findings")


@gluon.jit
def producer(x, smem, ready, empty, steps, BLOCK: gl.constexpr):
    i = gl.arange(0, BLOCK, layout=gl.BlockedLayout([1], [32], [1], [0]))
    for step in range(steps):
        mbarrier.wait(empty.index(step % 2), (step // 2 + 1) & 1)
        smem.index(step % 2).store(gl.load(x + step * BLOCK + i))
        mbarrier.arrive(ready.index(step % 2), count=1)


@gluon.jit
def consumer(out, smem, ready, empty, steps, BLOCK: gl.constexpr, FORGETS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    for step in range(steps):
        mbarrier.wait(ready.index(step % 2), step // 2 & 1)
        gl.store(out + step * BLOCK + i, smem.index(step % 2).load(layout) + 1)
        if not FORGETS:
            mbarrier.arrive(empty.index(step % 2), count=1)


@gluon.jit
def specialized(x, out, steps, BLOCK: gl.constexpr, FORGETS: gl.constexpr):
    smem = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(2):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    start = gl.program_id(0) * steps * BLOCK
    gl.warp_specialize(
        [
            (consumer, (out + start, smem, ready, empty, steps, BLOCK, FORGETS)),
            (producer, (x + start, smem, ready, empty, steps, BLOCK)),
        ],
        [1],
        [24],
    )


def test_partitions_wait_for_each_other() -> None:
    x, out = np.arange(3 * 5 * 32, dtype="f4"), np.zeros(3 * 5 * 32, "f4")
    run(specialized, 3, x, out, 5, BLOCK=32, FORGETS=False)
    assert (out == x + 1).all()


def test_partitions_that_all_wait_are_a_deadlock() -> None:
    x, out = np.arange(5 * 32, dtype="f4"), np.zeros(5 * 32, "f4")
    with pytest.raises(KernelFault, match=r"test_gluon.py:\d+: deadlock: 2 partitions") as raised:
        run(specialized, 1, x, out, 5, BLOCK=32, FORGETS=True)
    consumes, produces = (line_of(one, "mbarrier.wait") for one in (consumer, producer))
    assert [part.split(", and")[0] for part in str(raised.value).split("completes: ")[1].split(" | ")] == [
        f"line {consumes}: ready.index(step % 2), number 0 of 2, is waited for with parity 1",
        f"line {produces}: empty.index(step % 2), number 0 of 2, is waited for with parity 0",
    ]


@gluon.jit
def refused(x):
    gl.bank_conflicts(x, x)


def test_function_that_is_not_executed_is_named_with_its_line() -> None:
    with pytest.raises(Unsupported, match=r"test_gluon.py:\d+: .*bank_conflicts is not supported"):
        run(refused, 1, np.zeros(1, "f4"))


@gluon.jit
def fused_product(x, out):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [8, 4], [4, 1], [1, 0])
    place = (
        gl.arange(0, 16, gl.SliceLayout(1, layout))[:, None] * 16 + gl.arange(0, 16, gl.SliceLayout(0, layout))[None]
    )
    value = gl.load(x + place)
    gl.store(out + place, gl.dot_fma(value, value, gl.zeros((16, 16), gl.float32, layout)))


@pytest.mark.skipif(not hasattr(gl, "dot_fma"), reason="this Gluon has no products by fused multiply-adds")
def test_products_by_fused_multiply_adds_have_all_digits() -> None:
    x, out = np.full((16, 16), 1 + 2.0**-12, "f4"), np.zeros((16, 16), "f4")
    run(fused_product, 1, x, out)
    np.testing.assert_allclose(out, x @ x, rtol=1e-6)
