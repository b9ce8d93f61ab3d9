"""What a kernel asks of memory at once, by the tiles of its resident blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.in_flight import share_in_flight

triton = pytest.importorskip("triton")

from tests.support import slow_kernels as kernels  # noqa: E402
from tests.support.compiled_variants import Variant, profile_of  # noqa: E402

SUM = Variant(kernels.sum_after_loop, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024})
# An H100's 3.35 TB/s need 15.2 kB of each multiprocessor on their way.
NEEDED_BYTES = 5120 / 8 * 2 * 2_619_000e3 * 600e-9 / 132


@pytest.mark.parametrize(
    ("variant", "blocks"),
    [
        (replace(SUM, grid=132), 1),
        (replace(SUM, grid=2 * 132), 2),
        (replace(SUM, grid=132, constants={"BLOCK": 64}), 1),
    ],
)
def test_blocks_that_are_resident_load_one_turn_at_once(variant: Variant, blocks: int) -> None:
    (kernel,) = Evidence(profile_of(variant)).hot_kernels
    assert share_in_flight(kernel) == pytest.approx(blocks * variant.constants["BLOCK"] * 4 / NEEDED_BYTES)


def test_many_blocks_ask_for_enough() -> None:
    (kernel,) = Evidence(profile_of(SUM)).hot_kernels
    assert share_in_flight(kernel) == 1


def test_without_a_known_gpu_it_is_not_known() -> None:
    profile = profile_of(SUM)
    (kernel,) = Evidence(replace(profile, meta={**profile.meta, "devices": [{"name": "other"}]})).hot_kernels
    assert share_in_flight(kernel) is None
