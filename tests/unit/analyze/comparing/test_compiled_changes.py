from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.comparing.compiled_changes import compiled_changes
from bragg.views.text.compiled_text import compiled_lines
from bragg.views.text.style import PLAIN
from tests.support import slow_kernels

triton = pytest.importorskip("triton")

from tests.support.compiled_variants import Variant, profile_of  # noqa: E402

HALVES = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "K": "i32"}
TILES = {"BM": 64, "BN": 64, "BK": 32, "PRECISION": "tf32"}
PRODUCT = Variant(slow_kernels.product, HALVES, TILES, options={"num_warps": 4, "num_stages": 3})


def changes(before: Variant, after: Variant) -> dict[str, tuple[object, object]]:
    """What changed, by fact, without what versions of Triton and ptxas do differently."""
    found = compiled_changes(profile_of(before), profile_of(after))
    assert {change.kernel for change in found} <= {"product"}
    return {
        change.fact: (change.before, change.after)
        for change in found
        if change.fact not in ("registers", "occupancy", "shared memory")
    }


def test_lost_alignment_is_told_as_width_and_pipeline() -> None:
    assert changes(PRODUCT, replace(PRODUCT, unaligned=("K",))) == {
        "width of loads": (16, 2),
        "pipelined loops": (1, 0),
    }


def test_other_warps_are_told_with_their_tensor_cores() -> None:
    told = changes(PRODUCT, replace(PRODUCT, options={"num_warps": 2, "num_stages": 3}))
    assert (told["warps"], told["tensor cores"]) == ((4, 2), ("wgmma", "mma.sync"))


def test_spills_and_stack_are_told() -> None:
    large = replace(PRODUCT, constants={**TILES, "BM": 128, "BN": 128}, options={"num_warps": 4, "num_stages": 3})
    told = changes(large, replace(large, options={**large.options, "maxnreg": 96}))
    assert set(told) == {"stack", "spilling instructions"}
    assert [told[fact][0] for fact in told] == [0, 0]


def test_equal_kernels_have_no_changes() -> None:
    assert changes(PRODUCT, PRODUCT) == {}


def test_a_kernel_is_one_line() -> None:
    found = compiled_changes(profile_of(PRODUCT), profile_of(replace(PRODUCT, unaligned=("K",))))
    (empty, line) = compiled_lines(found, PLAIN)
    assert empty == ""
    assert line.startswith("compiled otherwise: product: ")
    assert "width of loads 16 B → 2 B" in line
    assert "shared memory 24,576 B → " in line
