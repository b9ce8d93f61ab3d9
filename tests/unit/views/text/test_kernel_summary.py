from __future__ import annotations

from bragg.analyze.kernel_choice import choose_kernel
from bragg.analyze.kernel_summary import KernelSummary, summary_of
from bragg.model import Place
from bragg.model.kernels.compiled import CompiledKernel, Counted
from bragg.views.text.kernel_summary import summary_json, summary_lines
from tests.support.profiles import profile_from_text

KERNEL = CompiledKernel(
    "product/01",
    target="cuda:90",
    num_warps=4,
    num_stages=3,
    max_registers=96,
    registers=96,
    stack_bytes=512,
    static_shared_bytes=24,
    dynamic_shared_bytes=49_152,
    occupancy=0.25,
    occupancy_limit="shared memory",
    spills=(Counted(Place("a.py", 3), 300), Counted(Place("a.py", 4), 94)),
)


def test_a_kernel_is_what_it_takes_what_limits_it_and_its_time() -> None:
    assert list(summary_lines(KernelSummary(KERNEL, 105e6, 0.999, 30))) == [
        "96 registers a thread (at most 96), 394 instructions spill, 512 B of stack, 49.2 kB of shared memory a block",
        "4 warps, 3 stages, occupancy at most 25.0 %, limited by shared memory, compiled for sm_90",
        "105 ms of GPU time (99.9 %) in 30 launches, 3.50 ms each",
    ]


def test_what_is_not_known_is_left_out() -> None:
    assert list(summary_lines(KernelSummary(CompiledKernel("product/01", spills=())))) == ["no spills"]
    assert list(summary_lines(KernelSummary(None))) == []
    assert summary_json(KernelSummary(None))["compiled"] is None


def test_the_time_is_that_of_all_call_paths_of_one_specialization() -> None:
    profile = profile_from_text("root\n  a\n    k<w4> 3us\n  b\n    k<w4> 1us\n    k<w8> 4us\n")
    summary = summary_of(profile, choose_kernel(profile, "k<w4>"))
    assert (summary.compiled, summary.time_ns, summary.share, summary.launches) == (None, 4000.0, 0.5, 2)
