# ruff: noqa: N803 - constants of a kernel are capitals, as in Gluon's own code
"""Ten planted hangs: each is told with its barrier, the phase, the line that waits and the line that came last."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

pytest.importorskip("triton")
pytest.importorskip("torch")
gluon = pytest.importorskip("triton.experimental.gluon")
from triton.experimental.gluon import language as gl  # noqa: E402

if not hasattr(gl, "num_warps"):
    pytest.skip("this Triton has an earlier Gluon", allow_module_level=True)

from triton.experimental.gluon.language.nvidia import blackwell  # noqa: E402
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma  # noqa: E402

from tests.kernels.planted.waits import matrix  # noqa: E402

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared


@gluon.jit
def loads(source, FAULT: gl.constexpr):
    smem = gl.allocate_shared_memory(gl.float32, [16, 16], source.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(2):
        mbarrier.init(bars.index(k), count=2 if FAULT == "count" else 1)
    for step in range(2):
        bar = bars.index(0)
        if FAULT == "no bytes":
            mbarrier.arrive(bar, count=1, pred=False)
        elif FAULT == "too many bytes":
            mbarrier.expect(bar, 16 * 16 * 8)
        elif FAULT != "count":
            mbarrier.expect(bar, 16 * 16 * 4)
        copy_in(source, [step * 16, 0], bar, smem, pred=FAULT != "no copy")
        if FAULT == "other barrier":
            bar = bars.index(1)
        mbarrier.wait(bar, 0 if FAULT == "parity" else step & 1)  # waits


@gluon.jit
def multiplies(FAULT: gl.constexpr):
    x = gl.allocate_shared_memory(gl.float16, [64, 32], gl.NVMMASharedLayout(64, 16, 2))
    y = gl.allocate_shared_memory(gl.float16, [16, 32], gl.NVMMASharedLayout(64, 16, 2))
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    x.store(gl.full([64, 32], 1.0, gl.float16, layout))
    y.store(gl.full([16, 32], 1.0, gl.float16, layout))
    acc = blackwell.allocate_tensor_memory(gl.float32, [64, 16], blackwell.TensorMemoryLayout([64, 16], 1))
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    blackwell.tcgen05_mma(x, y.permute((1, 0)), acc, use_acc=False)
    if FAULT != "no commit":
        blackwell.tcgen05_commit(done)
    mbarrier.wait(done, 0)  # waits


@gluon.jit
def gives(ready, free, steps, FAULT: gl.constexpr):
    for step in range(steps):
        mbarrier.wait(free, (step + 1) & 1)
        if FAULT != "one less" or step + 1 < steps:
            mbarrier.arrive(ready, count=1)


@gluon.jit
def takes(ready, free, steps, FAULT: gl.constexpr):
    for step in range(steps):
        mbarrier.wait(free if FAULT == "same barrier" else ready, step & 1)  # waits
        if FAULT != "keeps":
            mbarrier.arrive(ready if FAULT == "wrong arrival" else free, count=1)


@gluon.jit
def hands_over(FAULT: gl.constexpr):
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.init(free, count=1)
    gl.warp_specialize([(takes, (ready, free, 3, FAULT)), (gives, (ready, free, 3, FAULT))], [1], [24])


# Kernel, fault, how the line names the barrier, its phase that is under way.
HANGS = [
    (loads, "no bytes", "bar", 0),
    (loads, "too many bytes", "bar", 0),
    (loads, "no copy", "bar", 0),
    (loads, "count", "bar", 0),
    (loads, "parity", "bar", 2),
    (loads, "other barrier", "bar", 0),
    (multiplies, "no commit", "done", 0),
    (hands_over, "one less", "ready", 2),
    (hands_over, "keeps", "ready", 1),
    (hands_over, "same barrier", "free", 0),
]


@pytest.mark.parametrize(("kernel", "fault", "barrier", "phase"), HANGS, ids=[one[1] for one in HANGS])
def test_a_hang_names_its_barrier_its_phase_and_both_lines(kernel: Any, fault: str, barrier: str, phase: int) -> None:
    arguments = [matrix()] if kernel is loads else []
    with bragg.debug.check(target="any"), pytest.raises(KernelFault, match="deadlock") as hung:
        kernel[(1,)](*arguments, FAULT=fault)
    told = str(hung.value)
    lines, first = inspect.getsourcelines((takes if kernel is hands_over else kernel).fn)
    waits = first + next(k for k, line in enumerate(lines) if line.endswith("# waits\n"))
    assert re.search(rf"test_hangs.py:{waits}: |line {waits}: ", told), told
    assert re.search(rf"{barrier}\b.* is waited for with parity \d, and its phase {phase} is under way", told), told
    assert re.search(r"initialised in line \d+ of test_hangs.py", told), told
    assert re.search(r"arrived at last (never|in line \d+ of test_hangs.py)", told), told


@pytest.mark.parametrize(("kernel", "arguments"), [(loads, [matrix]), (multiplies, []), (hands_over, [])])
def test_the_same_kernels_end_without_the_fault(kernel: Any, arguments: list[Any]) -> None:
    with bragg.debug.check(target="any"):
        kernel[(1,)](*(make() for make in arguments), FAULT="")
