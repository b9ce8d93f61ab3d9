from __future__ import annotations

import pytest

from bragg.analyze.occupancy import occupancy
from bragg.analyze.peaks import ARCHITECTURES


# Worked out by hand from the rules of the CUDA C++ Programming Guide.
@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared_bytes", "expected"),
    [
        ("90", 1024, 32, 0, (1.0, "")),
        ("90", 128, 255, 33_792, (0.125, "registers")),  # 8 warps of 8,192 registers
        ("90", 256, 202, 49_152, (0.125, "registers")),  # 6,656 registers a warp: 9 warps, 8 of them given
        ("90", 32, 16, 0, (0.5, "blocks")),  # 32 blocks of a warp
        ("90", 128, 32, 200_000, (0.0625, "shared memory")),  # one block
        ("90", 768, 16, 0, (0.75, "threads")),  # two blocks of 24 warps
        ("86", 1024, 16, 0, (1024 / 1536, "threads")),
        ("75", 1024, 64, 0, (1.0, "")),
        ("70", 64, 16, 3_100, (58 / 64, "shared memory")),  # 29 of 3,328 bytes: blocks of 256
        ("120", 32, 16, 0, (0.5, "blocks")),  # 24 of 48 warps
        ("121", 128, 32, 49_152, (8 / 48, "shared memory")),  # two blocks of 49 kB
        ("110", 512, 16, 0, (1.0, "")),  # 3 of 16 warps
    ],
)
def test_occupancy_and_its_limit(
    arch: str, threads: int, registers: int, shared_bytes: int, expected: tuple[float, str]
) -> None:
    assert occupancy(arch, threads, registers, shared_bytes) == expected


def test_every_architecture_with_peaks_has_limits() -> None:
    known = [arch for arch in ARCHITECTURES if not arch.startswith("gfx")]
    assert [arch for arch in known if occupancy(arch, 128, 32, 0)[0] is None] == []


def test_unknown_devices_and_blocks_that_do_not_fit_have_none() -> None:
    assert occupancy("gfx942", 256, 32, 0) == (None, "")
    assert occupancy("90", 256, 32, 1 << 20) == (None, "")
