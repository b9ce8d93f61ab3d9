from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.code.compiled.resources import Resources, resources_of
from bragg.model.kernels.compiled import TensorCores
from tests.support import slow_kernels, slow_loops, slow_passes
from tests.support.profiles import profile_from_text

triton = pytest.importorskip("triton")

from tests.support.compiled_variants import Variant, compiled_row, line_of, profile_of  # noqa: E402

HALVES = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "K": "i32"}
TILES = {"BM": 64, "BN": 64, "BK": 32, "PRECISION": "tf32"}
PRODUCT = Variant(slow_kernels.product, HALVES, TILES, options={"num_warps": 4, "num_stages": 3})
SCALE = Variant(slow_kernels.scale, {"x": "*fp16", "out": "*fp16", "n": "i32", "factor": "fp32"}, {"BLOCK": 1024})
CUBIN = Path(__file__).parents[2] / "golden/cubins/triton-3.9-softmax-sm90.cubin"


def named(name: str, number: int) -> tuple[str]:
    """An argument as TTIR names it; Triton 3.4 only counts."""
    return (f"arg{number}" if triton.__version__.startswith("3.4") else name,)


def test_what_the_compiler_was_asked_for_is_told_by_texts_not_by_the_name() -> None:
    row = compiled_row(PRODUCT)
    assert row.names == ("product",)
    assert (row.target, row.arch, row.num_warps, row.num_stages, row.num_ctas) == ("cuda:90", "90", 4, 3, 1)
    assert row.unread == {}
    assert row.dynamic_shared_bytes == 24576


def test_registers_of_the_cubin_limit_occupancy() -> None:
    row = compiled_row(PRODUCT)
    assert row.registers is not None
    assert 32 <= row.registers <= 255
    assert row.stack_bytes == 0
    assert row.spills == ()
    assert row.occupancy_limit == "registers"


def test_a_product_has_its_dot_its_tensor_cores_and_its_pipeline() -> None:
    row = compiled_row(PRODUCT)
    assert row.dots is not None
    assert row.loops is not None
    (dot,), (loop,) = row.dots, row.loops
    assert (dot.m, dot.n, dot.k, dot.operand, dot.in_loop) == (64, 64, 32, "f16", True)
    assert dot.place.line == line_of(slow_kernels.product)
    assert row.tensor_cores is TensorCores.WGMMA
    assert (loop.place.line, loop.n_loads, loop.n_dots) == (line_of(slow_kernels.product, "loop"), 2, 1)
    assert (loop.is_pipelined, loop.buffers) == (True, 3)


def test_without_a_divisor_loads_are_narrow_and_nothing_is_pipelined() -> None:
    row = compiled_row(replace(PRODUCT, unaligned=("K",)))
    assert row.accesses is not None
    assert row.loops is not None
    loads = [access for access in row.accesses if not access.is_store]
    assert [(each.intended_bytes, each.compiled_bytes, each.of_address) for each in loads] == [
        (2, 2, named("K", 3))
    ] * 2
    assert [(each.strides, each.is_contiguous) for each in loads] == [(("K", "1"), True), (("1", "K"), True)]
    assert [loop.is_pipelined for loop in row.loops] == [False]


def test_a_mask_narrows_what_the_layout_intended() -> None:
    row = compiled_row(replace(SCALE, unaligned=("n",)))
    assert row.accesses is not None
    load, store = row.accesses
    assert (load.intended_bytes, load.compiled_bytes, load.of_mask, load.of_address) == (16, 2, named("n", 2), ())
    assert (store.is_store, store.compiled_bytes) == (True, 2)
    assert load.place.line == line_of(slow_kernels.scale)
    assert [one.divisibility for one in row.arguments or ()][:3] == [16, 16, 1]


def test_lanes_that_meet_in_a_bank_are_counted_by_the_turn_of_the_loop() -> None:
    row = compiled_row(
        replace(PRODUCT, kernel=slow_kernels.product_of_rows, types={**HALVES, "a": "*fp32", "b": "*fp32"})
    )
    assert {(each.ways, each.is_store, each.elements, each.element_bytes) for each in row.conflicts or ()} == {
        (8, True, 2048, 4)
    }
    assert {each.place.line for each in row.conflicts or ()} == {line_of(slow_kernels.product_of_rows)}
    assert compiled_row(PRODUCT).conflicts == ()


@pytest.mark.parametrize(
    ("kernel", "repeated"),
    [
        (slow_kernels.scale_columns, [False, True, False]),
        (slow_kernels.add_to_columns, [False, False, True]),  # it stores the sum of each turn to one place
        (slow_kernels.sum_with_atomics, [False, False]),
    ],
)
def test_an_access_is_repeated_only_where_nothing_may_have_changed_it(kernel: Any, repeated: list[bool]) -> None:
    types = {"x": "*fp32", "weight": "*fp32", "out": "*fp32", "n": "i32"}
    row = compiled_row(Variant(kernel, types, {"BLOCK": 1024}))
    assert [each.is_repeated for each in row.accesses or () if each.in_loop] == repeated


@pytest.mark.parametrize(
    ("kernel", "types", "axes"),
    [
        (slow_kernels.subtract_mean, {"mean": "*fp32"}, [()]),
        (slow_kernels.sum_in_loop, {}, [("x",)]),
        (slow_loops.norm_blocks_of_rows, {}, [("x",)]),  # its programs along y do the same
        (slow_kernels.add_from_row, {}, [("x",)]),  # its loads are the same, what it adds them to is not
        (slow_kernels.first_sums_all, {}, [None]),  # in a branch, which one program takes
    ],
)
def test_a_loop_does_the_same_in_every_program_only_where_nothing_in_it_depends_on_one(
    kernel: Any, types: dict[str, str], axes: list[tuple[str, ...] | None]
) -> None:
    row = compiled_row(Variant(kernel, {"x": "*fp32", "out": "*fp32", "n": "i32", **types}, {"BLOCK": 1024}))
    assert [each.axes for each in row.loops or ()] == axes


def attention(**changed: Any) -> Variant:
    """Attention to the 256 rows before each, of which programs compute all turns up to their own."""
    types = dict.fromkeys(("q", "k", "v", "out"), "*fp16") | {"n": "i32"}
    variant = Variant(slow_passes.attend_near, types, {"BM": 64, "BN": 64, "D": 64, "WINDOW": 256}, grid=96)
    return replace(variant, **changed)


@pytest.mark.parametrize(
    ("variant", "mean", "kept"),
    [
        (attention(), 48.5, 6),  # 1 to 96 turns; 64 rows reach 320 elements, which lie in 6 tiles at most
        (attention(grid=1), 1, 6),
        (attention(constants={"BM": 128, "BN": 32, "D": 64, "WINDOW": 512}, grid=2), 6, 21),
    ],
)
def test_a_window_leaves_a_program_few_of_the_turns_that_it_takes(variant: Variant, mean: float, kept: int) -> None:
    (loop,) = compiled_row(variant).masked_loops or ()
    assert (loop.limit, loop.turns, loop.mean_turns, loop.kept_turns) == ("start", None, mean, kept)


@pytest.mark.parametrize(
    ("kernel", "types", "sizes", "times"),
    [
        (slow_loops.count_pixels, {"span": "i32"}, {"span": 32_768}, 16),
        (slow_loops.count_pixels, {"span": "i32"}, {}, None),
        (slow_loops.count_pixels_in_strides, {"n": "i32"}, {"n": 1 << 20}, 8),
        (slow_loops.count_pixels_of_part, {"n": "i32"}, {"n": 1 << 20}, 8),
        (slow_loops.count_pixels_of_part, {"n": "i32"}, {"n": 10_000}, 1),
        (slow_loops.count_pixels_of_part, {"n": "i32"}, {}, None),
        (slow_loops.count_pixels_before, {"span": "i32"}, {"span": 32_768}, 1),
    ],
)
def test_turns_of_the_first_launch_tell_how_often_a_program_does_an_atomic_operation(
    kernel: Any, types: dict[str, str], sizes: dict[str, int], times: int | None
) -> None:
    constants = {"BINS": 256, "BLOCK": 2048}
    row = compiled_row(Variant(kernel, {"x": "*u8", "out": "*i32", **types}, constants, grid=64, sizes=sizes))
    assert [each.times for each in row.atomics or ()] == [times]


def test_what_was_widened_and_what_is_a_sum_of_products_is_known() -> None:
    wide = compiled_row(replace(PRODUCT, kernel=slow_kernels.product_of_widened))
    assert [each.widened_from for each in wide.dots or ()] == ["f16"]
    assert [each.widened_from for each in compiled_row(PRODUCT).dots or ()] == [""]
    small = {**TILES, "BM": 16, "BN": 32, "BK": 64}
    summed = compiled_row(replace(PRODUCT, kernel=slow_kernels.product_by_sum, constants=small))
    assert [(each.m, each.n, each.k, each.in_loop) for each in summed.products_by_sums or ()] == [(16, 32, 64, True)]
    assert compiled_row(PRODUCT).products_by_sums == ()


def test_spills_have_lines() -> None:
    large = replace(PRODUCT, constants={**TILES, "BM": 128, "BN": 128}, options={"num_warps": 4, "maxnreg": 96})
    row = compiled_row(large)
    assert row.stack_bytes
    assert row.spills
    assert row.spills[0].place.file.endswith("slow_kernels.py")


def test_an_unreadable_text_disables_its_facts_only() -> None:
    profile = profile_of(PRODUCT)
    broken = {name: "tt.func {{{ %" if name.endswith(".ttir") else text for name, text in profile.sources.items()}
    row = CompiledKernels(replace(profile, sources=broken)).of("product")
    assert row is not None
    assert row.accesses is None
    assert row.dots is None
    assert "could not be read" in row.unread["ttir"]
    assert row.tensor_cores is TensorCores.WGMMA
    assert row.num_warps == 4


@pytest.mark.parametrize("ending", ["ttir", "ttgir", "ptx", "sass"])
def test_texts_cut_anywhere_are_read_or_told(ending: str) -> None:
    profile = profile_of(PRODUCT)
    name = next(name for name in profile.sources if name.endswith(f".{ending}"))
    text = profile.sources[name]
    for at in range(0, len(text), max(len(text) // 12, 1)):
        cut = replace(profile, sources={**profile.sources, name: text[:at]})
        assert CompiledKernels(cut).of("product") is not None


def test_a_kernel_without_texts_has_no_row() -> None:
    assert CompiledKernels(profile_from_text("root\n  gemm 5us")).of("gemm") is None


def test_registers_and_stack_of_a_cubin() -> None:
    assert resources_of(CUBIN.read_bytes(), "softmax") == Resources(24, 0)
    assert resources_of(CUBIN.read_bytes(), "other") is None


@pytest.mark.parametrize("size", [0, 10, 64, 1000])
def test_a_damaged_cubin_is_an_error(size: int) -> None:
    with pytest.raises(ValueError, match=r"ELF|damaged"):
        resources_of(CUBIN.read_bytes()[:size], "softmax")
