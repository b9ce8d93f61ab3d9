"""What is read from a kernel's own texts."""

from __future__ import annotations

import pytest

from bragg.record.instrument.compiled_kernel import partition_warps

SPECIALIZED = """module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
    ttg.warp_specialize(%total) attributes {requestedRegisters = array<i32: 24, 24>}
    default {
    }
    partition0(%total_29: !ttg.memdesc<3x1xi64>) num_warps(1) {
      ttg.warp_return
    }
    partition1(%total_29: !ttg.memdesc<3x1xi64>) num_warps(2) {
      ttg.warp_return
    } : (!ttg.memdesc<3x1xi64>) -> ()
"""


@pytest.mark.parametrize(
    ("ttgir", "warps", "expected"),
    [
        (SPECIALIZED, 8, (0, 4, 6)),  # Triton 3.6 puts partition 1 at warps 4 and 5, partition 0 at 6
        (SPECIALIZED, 6, (0, 4)),
        ('module attributes {"ttg.num-warps" = 8 : i32} {', 8, (0,)),
        ("", 4, (0,)),
    ],
)
def test_the_first_warp_of_each_partition(ttgir: str, warps: int, expected: tuple[int, ...]) -> None:
    assert partition_warps(ttgir, warps) == expected


def test_the_partitions_of_a_kernel_that_triton_specializes() -> None:
    kernel = pytest.importorskip("tests.support.timed_kernels").compiled("matmul_specialized")
    assert partition_warps(kernel.asm["ttgir"], kernel.metadata.num_warps) == (0, 4, 8)
