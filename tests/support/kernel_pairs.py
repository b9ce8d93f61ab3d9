"""Broken and repaired kernels for each rule about kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.support import slow_comparisons as comparing
from tests.support import slow_kernels as kernels
from tests.support import slow_loops as loops
from tests.support import slow_passes as passes
from tests.support.compiled_variants import MANY_BLOCKS, Variant

__all__ = ["PAIRS", "Pair"]

_FLOAT, _HALF, _INT = "*fp32", "*fp16", "i32"
_COPY = {"x": _FLOAT, "out": _FLOAT}
_LOOP = {**_COPY, "n": _INT}
_FEW_BLOCKS = 132 * 8  # of 32 by 32: fewer larger ones would not fill the GPU


@dataclass(frozen=True)
class Pair:
    """A kernel with a defect and its repaired twin.

    Attributes:
        rule: The rule that finds the defect.
        broken: It.
        repaired: The twin.
        mark: The comment on the line to blame; empty: the defect is of no line.
    """

    rule: str
    broken: Variant
    repaired: Variant
    mark: str = "slow"


def _product(
    operand: str, *, tile: int = 64, precision: str = "tf32", grid: int = MANY_BLOCKS, **options: int
) -> Variant:
    types = {"a": operand, "b": operand, "c": operand, "K": _INT}
    sizes = {"BM": tile, "BN": tile, "BK": 32, "PRECISION": precision}
    return Variant(kernels.product, types, sizes, options={"num_warps": 4, **options}, grid=grid)


_SCALE = Variant(kernels.scale, {"x": _HALF, "out": _HALF, "n": _INT, "factor": "fp32"}, {"BLOCK": 1024})
_SCALE_FLOAT = replace(_SCALE, types={**_SCALE.types, "x": _FLOAT, "out": _FLOAT})
_ROWS = Variant(kernels.scale_rows, {"x": _HALF, "out": _HALF, "stride": _INT, "factor": "fp32"}, {"BLOCK": 1024})
_COLUMNS = Variant(kernels.copy_columns, {**_COPY, "stride": _INT}, {"BLOCK": 1024})
_WRITE = Variant(kernels.write_columns, {**_COPY, "stride": _INT}, {"BM": 64, "BN": 64})
_TINY = {"constants": {"BLOCK": 128}, "options": {"num_warps": 1}, "grid": 132 * 11_000}
_HALVES = _product(_HALF)
_BFLOATS = _product("*bf16")
# Of float32, Triton makes tl.dot of the sum itself.
_SMALL_HALVES, _SMALL_BFLOATS, _SMALL_FLOATS = (
    _product(operand, tile=32, grid=_FEW_BLOCKS) for operand in (_HALF, "*bf16", _FLOAT)
)
_FLOATS = _product(_FLOAT)
_MEAN = Variant(kernels.subtract_mean, {**_LOOP, "mean": _FLOAT}, {"BLOCK": 1024})
_DIVIDED = Variant(kernels.divide_by_greatest, {**_LOOP, "greatest": _FLOAT}, {"BLOCK": 1024})
_BYTES = replace(_product("*fp8e5"), types={"a": "*fp8e5", "b": "*fp8e5", "c": _FLOAT, "K": _INT})
_SCALED = Variant(kernels.scale_columns, {**_LOOP, "weight": _FLOAT}, {"BLOCK": 1024})
_STRIP = Variant(
    kernels.strip_of_products, {"a": _HALF, "b": _HALF, "c": _HALF, "n": _INT}, {"BM": 128, "BN": 64, "BK": 64}
)
_SOFTPLUS = Variant(kernels.softplus, {**_COPY, "beta": "*fp64"}, {"BLOCK": 1024})
_WEIGHTED = Variant(kernels.weighted_square, {**_LOOP, "weight": _FLOAT}, {"BLOCK": 1024})
_FOURIER = Variant(passes.fourier_sums, _LOOP, {"BLOCK": 256})
_ATOMICS = Variant(kernels.sum_by_atomics, _COPY, {"BLOCK": 1024})
_COUNT = Variant(kernels.count_in_loop, _LOOP, {"BLOCK": 1024})
_SUM = Variant(kernels.sum_in_loop, _LOOP, {"BLOCK": 1024})
_GREATEST = Variant(kernels.greatest_in_loop, _LOOP, {"BLOCK": 1024})
_SHORT_SUM, _SHORT_GREATEST = (replace(each, constants={"BLOCK": 256}) for each in (_SUM, _GREATEST))
_TILES = Variant(kernels.sum_of_transposed, {**_LOOP, "y": _FLOAT}, {"B": 64})
_HALF_TILES = replace(_TILES, types={"x": _HALF, "y": _HALF, "out": _HALF, "n": _INT})
_ONE_ATOMIC = replace(_ATOMICS, kernel=kernels.sum_then_atomic)
_SUM_AFTER = replace(_SUM, kernel=kernels.sum_after_loop)
_COUNT_AFTER = replace(_COUNT, kernel=kernels.count_after_loop)
_LARGE = {
    "constants": {"BM": 128, "BN": 128, "BK": 32, "PRECISION": "tf32"},
    "options": {"num_warps": 4, "maxnreg": 96},
}

_FENCED = replace(_SUM, kernel=kernels.fenced_sum)
_FENCED_HALVES = replace(_FENCED, types={**_FENCED.types, "x": _HALF})
_UNROLLED = Variant(kernels.settle_unrolled, _COPY, {"TURNS": 40, "BLOCK": 4096})
_UNROLLED_TO_HALVES = replace(_UNROLLED, types={"x": _FLOAT, "out": _HALF})
_DEEP = replace(_HALVES, constants={**_HALVES.constants, "BM": 128, "BN": 128, "BK": 64}, options={"num_stages": 5})
_DEEP_BFLOATS = replace(_DEEP, types=_BFLOATS.types)
_THREE_STAGES = {"num_stages": 3}

_TRANSPOSE = Variant(loops.transpose_by_index, {**_COPY, "rows": _INT}, {"COLUMNS": 4096, "BLOCK": 1024})
_BY_SIZE = Variant(loops.transpose_by_size, {**_COPY, "rows": _INT, "columns": _INT}, {"BLOCK": 1024})
_BY_COUNT = Variant(loops.transpose_by_count, {**_COPY, "n": _INT, "columns": _INT}, {"BLOCK": 1024})
_BY_TILES = replace(_BY_SIZE, kernel=loops.transpose_by_tiles, constants={"BLOCK": 64})
_OUTER = Variant(loops.product_by_columns, {"a": _HALF, "b": _HALF, "c": _HALF, "K": _INT}, {"BM": 64, "BN": 64})
_ADDED = Variant(loops.add_rows_atomically, _LOOP, {"BLOCK": 1024})
_STORED = replace(_ADDED, kernel=loops.add_rows_in_memory)
_STORED_FROM_HALVES = replace(_STORED, types={**_LOOP, "x": _HALF})
_PIXELS = Variant(
    loops.count_pixels,
    {"x": "*u8", "out": "*i32", "span": _INT},
    {"BINS": 256, "BLOCK": 2048},
    grid=2048,
    sizes={"span": 32_768},
)
_PIXELS_IN_STRIDES = replace(
    _PIXELS, kernel=loops.count_pixels_in_strides, types={"x": "*u8", "out": "*i32", "n": _INT}, sizes={"n": 1 << 26}
)
_POWER = Variant(loops.gelu_by_power, _COPY, {"BLOCK": 1024}, grid=1 << 17)
_CAUSAL = Variant(
    loops.attend_to_all,
    {"q": _HALF, "k": _HALF, "v": _HALF, "out": _HALF, "n": _INT},
    {"BM": 64, "BN": 64, "D": 64},
    grid=1024,
)
_CAUSAL_BFLOATS = replace(_CAUSAL, types=dict.fromkeys(("q", "k", "v", "out"), "*bf16") | {"n": _INT})
_COLUMN_SUMS = Variant(loops.sum_columns, _LOOP, {"BM": 256, "BN": 4})
_PRINTED = replace(_SCALE, kernel=loops.scale_and_print)
_BLOCKS_OF_ROWS = Variant(loops.norm_blocks_of_rows, _LOOP, {"BLOCK": 1024}, grid=1024, grid_y=8)
_ROW_SUMS = Variant(loops.sum_of_rows, _LOOP, {"ROWS": 1, "BLOCK": 1024}, options={"num_warps": 8}, grid=1 << 17)
_SOFTMAX = Variant(loops.softmax, {**_LOOP, "x": _HALF, "out": _HALF}, {"BLOCK": 512}, options={"num_warps": 16})
_OF_BYTES = replace(
    _BFLOATS, kernel=loops.product_of_bytes, types={**_BFLOATS.types, "b": "*i8"}, options={"num_warps": 4}
)

_OF_SCALED_BYTES = replace(
    _OF_BYTES,
    kernel=loops.product_of_scaled_bytes,
    types={"a": "*bf16", "b": "*i8", "scales": _FLOAT, "c": "*bf16", "K": _INT},
)
_LONG_ROWS = replace(_SUM_AFTER, constants={"BLOCK": 2048}, sizes={"n": 32_768})

_PADDED = Variant(passes.mean_of_padded, {"x": _FLOAT, "lengths": "*i32", "out": _FLOAT}, {"MOST": 8192, "BLOCK": 1024})
_SLOTS = Variant(
    passes.sum_of_slots,
    {"items": "*i32", "counts": "*i32", "table": _FLOAT, "out": _FLOAT},
    {"SLOTS": 96, "WIDTH": 512},
)
_WINDOW = replace(_CAUSAL, kernel=passes.attend_near, constants={**_CAUSAL.constants, "WINDOW": 256})
_EXPERTS = Variant(
    passes.all_experts,
    {"x": _HALF, "weights": _HALF, "experts": "*i32", "out": _HALF},
    {"EXPERTS": 8, "BM": 64, "D": 64},
)
_SEGMENT = Variant(passes.sum_of_segment, {**_LOOP, "segments": "*i32"}, {"BLOCK": 1024}, grid=1024)
_THREE_PASSES = Variant(passes.softmax_in_three, _LOOP, {"BLOCK": 1024})
_THREE_OF_HALVES = replace(_THREE_PASSES, types={"x": _HALF, "out": _HALF, "n": _INT}, constants={"BLOCK": 2048})
_BY_OUTPUT = replace(_THREE_PASSES, kernel=passes.softmax_by_output)
_IN_FLOATS = replace(_CAUSAL, kernel=passes.attend_in_floats)
_DISTANCES = Variant(
    passes.distances,
    {"a": _HALF, "b": _HALF, "out": _FLOAT, "K": _INT},
    {"BM": 32, "BN": 32, "BK": 32},
    grid=_FEW_BLOCKS,
)
_CUMULATED = Variant(passes.cumulate, _COPY, {"BLOCK": 1024})
_COLUMNS_OF_MANY = Variant(passes.softmax_of_columns, _COPY, {"COLUMNS": 500, "BLOCK": 4096}, grid=1 << 17)
_ROW_OF_MANY = Variant(passes.softmax_of_row, _LOOP, {"BLOCK": 4096}, grid=1 << 17, sizes={"n": 500})
_ALL_OF = replace(_SCALE, sizes={"n": 1 << 20}, grid=1 << 10)
_ALL_OF_FLOATS = replace(_ALL_OF, types=_SCALE_FLOAT.types)
_PARTS = Variant(
    passes.product_of_parts,
    {"a": _HALF, "b": _HALF, "c": _FLOAT, "K": _INT},
    {"PARTS": 64, "BM": 64, "BN": 64, "BK": 32},
    grid=64,
    grid_z=64,
)
_BINS = Variant(
    comparing.count_bin_by_bin, {"x": "*i32", "out": "*i32", "n": _INT}, {"BINS": 64, "BLOCK": 1024}, grid=1 << 14
)
_TILE_OF_BINS = replace(_BINS, kernel=comparing.histogram_of_tile)
_SUMS_BEFORE = Variant(comparing.sums_before, _COPY, {"BLOCK": 256})
_TABLE = Variant(comparing.look_up_in_turns, {"x": "*i32", "table": _FLOAT, "out": _FLOAT, "n": _INT}, {"BLOCK": 1024})
_TOP = Variant(comparing.greatest_in_turns, _COPY, {"K": 32, "BLOCK": 1024})
_WRITTEN_BINS = Variant(comparing.count_written_bins, {"x": "*i32", "out": "*i32"}, {"BLOCK": 1024})
_EDGES = Variant(comparing.place_in_turns, {"x": _FLOAT, "edges": _FLOAT, "out": "*i32", "n": _INT}, {"BLOCK": 1024})
_DIFFERENCES = Variant(
    passes.squared_differences, {"a": _FLOAT, "b": _FLOAT, "out": _FLOAT, "K": _INT}, {"BM": 64, "BN": 64}
)
_OWN_EDGES = Variant(passes.sum_own_edges, {**_LOOP, "targets": "*i32"}, {"WIDTH": 128})
_STATE = Variant(passes.turn_state, {**_LOOP, "weights": _FLOAT}, {"H": 64})
_UNDER_LOCK = Variant(passes.add_under_lock, {**_COPY, "lock": "*i32"}, {"BLOCK": 1024})

PAIRS = (
    Pair("narrow-access", replace(_SCALE, unaligned=("n",)), _SCALE),
    Pair("narrow-access", replace(_ROWS, unaligned=("stride",)), _ROWS),
    Pair("uncoalesced-access", _COLUMNS, replace(_COLUMNS, kernel=kernels.copy_rows)),
    Pair("uncoalesced-access", _WRITE, replace(_WRITE, kernel=kernels.write_rows)),
    Pair(
        "register-spills",
        replace(
            _HALVES, constants={**_HALVES.constants, "BM": 128, "BN": 128}, options={"num_warps": 4, "maxnreg": 96}
        ),
        _HALVES,
    ),
    Pair(
        "register-spills",
        replace(
            _FLOATS, constants={**_FLOATS.constants, "BM": 128, "BN": 128}, options={"num_warps": 4, "maxnreg": 96}
        ),
        _FLOATS,
    ),
    Pair("dot-without-tensor-cores", _product(_FLOAT, precision="ieee"), _FLOATS),
    Pair("dot-without-tensor-cores", _product(_FLOAT, tile=32, precision="ieee", grid=_FEW_BLOCKS), _SMALL_FLOATS),
    Pair("product-by-sum", replace(_SMALL_BFLOATS, kernel=kernels.product_by_sum), _SMALL_BFLOATS),
    Pair("product-by-sum", replace(_SMALL_HALVES, kernel=kernels.product_by_sum), _SMALL_HALVES),
    Pair("widened-product", replace(_HALVES, kernel=kernels.product_of_widened), _HALVES),
    Pair("widened-product", replace(_BFLOATS, kernel=kernels.product_of_widened), _BFLOATS),
    Pair("same-work", _MEAN, replace(_MEAN, kernel=kernels.subtract_known_mean)),
    Pair("same-work", _DIVIDED, replace(_DIVIDED, kernel=kernels.divide_by_known)),
    Pair("old-tensor-cores", _product(_HALF, num_warps=2), _HALVES),
    Pair("old-tensor-cores", _product(_FLOAT, num_warps=2), _FLOATS),
    Pair("loop-not-pipelined", replace(_HALVES, unaligned=("K",)), _HALVES, "loop"),
    Pair("loop-not-pipelined", _product(_HALF, num_stages=1), _product(_HALF, num_stages=3), "loop"),
    Pair("double-arithmetic", _SOFTPLUS, replace(_SOFTPLUS, types={**_COPY, "beta": _FLOAT})),
    Pair("double-arithmetic", replace(_WEIGHTED, types={**_LOOP, "weight": "*fp64"}), _WEIGHTED),
    Pair("slow-arithmetic", _POWER, replace(_POWER, kernel=loops.gelu_by_products)),
    Pair("slow-arithmetic", _FOURIER, replace(_FOURIER, kernel=passes.fourier_sums_by_turning)),
    Pair("atomics-on-one-address", _ATOMICS, replace(_ATOMICS, kernel=kernels.sum_then_atomic)),
    Pair("atomics-on-one-address", _COUNT, replace(_COUNT, kernel=kernels.count_after_loop)),
    Pair("reduction-in-loop", _SHORT_SUM, replace(_SHORT_SUM, kernel=kernels.sum_after_loop)),
    Pair("reduction-in-loop", _SHORT_GREATEST, replace(_SHORT_GREATEST, kernel=kernels.greatest_after_loop)),
    Pair("layout-conversion-in-loop", _TILES, replace(_TILES, kernel=kernels.sum_of_tiles)),
    Pair("layout-conversion-in-loop", _HALF_TILES, replace(_HALF_TILES, kernel=kernels.sum_of_tiles)),
    Pair("bank-conflicts", replace(_FLOATS, kernel=kernels.product_of_rows), _FLOATS),
    Pair("bank-conflicts", replace(_BYTES, kernel=kernels.product_of_rows), _BYTES),
    Pair("repeated-loads", _SCALED, replace(_SCALED, kernel=kernels.scale_columns_once)),
    Pair("repeated-loads", _STRIP, replace(_STRIP, kernel=kernels.strip_of_products_once)),
    Pair("idle-threads", replace(_SCALE, constants={"BLOCK": 64}, options={"num_warps": 8}), _SCALE, ""),
    Pair(
        "idle-threads",
        replace(_ATOMICS, kernel=kernels.sum_then_atomic, constants={"BLOCK": 32}),
        replace(_ATOMICS, kernel=kernels.sum_then_atomic),
        "",
    ),
    Pair("few-blocks", replace(_SCALE, grid=16), _SCALE, ""),
    Pair("few-blocks", replace(_HALVES, grid=64), _HALVES, ""),
    Pair("small-blocks", replace(_SCALE, **_TINY), _SCALE, ""),
    Pair("small-blocks", replace(_SCALE_FLOAT, **_TINY), _SCALE_FLOAT, ""),
    Pair("tail-wave", replace(_HALVES, grid=132 * 16 + 8), replace(_HALVES, grid=132 * 16), ""),
    Pair("tail-wave", replace(_FLOATS, grid=132 * 4 + 8), replace(_FLOATS, grid=132 * 4), ""),
    Pair("idle-barrier", _FENCED, replace(_FENCED, kernel=kernels.sum_after_loop)),
    Pair("idle-barrier", _FENCED_HALVES, replace(_FENCED_HALVES, kernel=kernels.sum_after_loop)),
    Pair("large-code", _UNROLLED, replace(_UNROLLED, kernel=kernels.settle)),
    Pair("large-code", _UNROLLED_TO_HALVES, replace(_UNROLLED_TO_HALVES, kernel=kernels.settle)),
    Pair("too-many-stages", _DEEP, replace(_DEEP, options=_THREE_STAGES), "loop"),
    Pair("too-many-stages", _DEEP_BFLOATS, replace(_DEEP_BFLOATS, options=_THREE_STAGES), "loop"),
    Pair(
        "low-occupancy",
        replace(_SUM, kernel=kernels.sum_after_loop, constants={"BLOCK": 32768}),
        replace(_SUM, kernel=kernels.sum_after_loop),
        "",
    ),
    Pair(
        "low-occupancy",
        replace(_COUNT, kernel=kernels.count_after_loop, constants={"BLOCK": 32768}),
        replace(_COUNT, kernel=kernels.count_after_loop),
        "",
    ),
    Pair("uncoalesced-access", _TRANSPOSE, _BY_TILES),
    Pair("uncoalesced-access", _BY_SIZE, _BY_TILES),
    Pair("uncoalesced-access", _BY_COUNT, _BY_TILES),
    Pair("product-by-sum", _OUTER, replace(_OUTER, kernel=loops.product_of_columns)),
    Pair("loop-not-pipelined", replace(_HALVES, kernel=loops.product_while), _HALVES),
    Pair("atomics-on-one-address", _ADDED, replace(_ADDED, kernel=loops.add_rows_then_atomically)),
    Pair("atomics-on-one-address", _PIXELS, replace(_PIXELS, kernel=loops.count_pixels_before)),
    Pair("atomics-on-one-address", _PIXELS_IN_STRIDES, replace(_PIXELS, kernel=loops.count_pixels_before)),
    Pair("repeated-stores", _STORED, replace(_STORED, kernel=loops.add_rows_in_registers)),
    Pair("repeated-stores", _STORED_FROM_HALVES, replace(_STORED_FROM_HALVES, kernel=loops.add_rows_in_registers)),
    Pair("masked-turns", _CAUSAL, replace(_CAUSAL, kernel=loops.attend_to_earlier)),
    Pair("masked-turns", _CAUSAL_BFLOATS, replace(_CAUSAL_BFLOATS, kernel=loops.attend_to_earlier)),
    Pair("single-loads", Variant(loops.sum_by_elements, _LOOP, {}), _SUM_AFTER),
    Pair(
        "single-loads",
        Variant(loops.counts_before, {"x": "*i32", "out": "*i32"}, {}),
        Variant(loops.counts_before_by_tiles, {"x": "*i32", "out": "*i32"}, {"BLOCK": 1024}),
    ),
    Pair(
        "single-loads",
        Variant(loops.scale_by_elements, _COPY, {}),
        Variant(loops.scale_by_tiles, _COPY, {"BLOCK": 1024}),
    ),
    Pair("small-tiles", _product(_HALF, tile=32), _HALVES),
    Pair("small-tiles", _product("*bf16", tile=16), _BFLOATS),
    Pair("small-tiles", replace(_HALVES, constants={**_HALVES.constants, "BM": 16, "BN": 128}, grid_y=8), _HALVES),
    Pair(
        "small-tiles",
        replace(_HALVES, constants={**_HALVES.constants, "BM": 128, "BN": 128, "BK": 16}, options={"num_warps": 8}),
        replace(_HALVES, constants={**_HALVES.constants, "BM": 128, "BN": 128, "BK": 64}, options={"num_warps": 8}),
    ),
    Pair("uncoalesced-access", _COLUMN_SUMS, replace(_COLUMN_SUMS, constants={"BM": 32, "BN": 32})),
    Pair("kernel-prints", _PRINTED, _SCALE),
    Pair("kernel-prints", replace(_PRINTED, types=_SCALE_FLOAT.types), _SCALE_FLOAT),
    Pair("same-work", _BLOCKS_OF_ROWS, replace(_BLOCKS_OF_ROWS, kernel=loops.norm_rows, grid_y=1)),
    Pair("atomics-on-one-address", _ROW_SUMS, replace(_ROW_SUMS, constants={"ROWS": 16, "BLOCK": 1024}, grid=1 << 13)),
    Pair("idle-threads", _SOFTMAX, replace(_SOFTMAX, options={"num_warps": 4}), ""),
    Pair("idle-threads", replace(_LONG_ROWS, constants={"BLOCK": 128}), _LONG_ROWS, ""),
    Pair("widened-product", _OF_SCALED_BYTES, replace(_OF_SCALED_BYTES, kernel=loops.scaled_product_of_bytes)),
    Pair("widened-product", _OF_BYTES, replace(_OF_BYTES, kernel=loops.product_of_converted_bytes)),
    Pair("masked-turns", _SLOTS, replace(_SLOTS, kernel=passes.sum_of_filled_slots)),
    Pair("masked-turns", _WINDOW, replace(_WINDOW, kernel=passes.attend_within_window)),
    Pair("masked-turns", _EXPERTS, replace(_EXPERTS, kernel=passes.own_expert)),
    Pair("masked-turns", _SEGMENT, replace(_SEGMENT, kernel=passes.sum_of_sorted_segment)),
    Pair("repeated-passes", _THREE_PASSES, replace(_THREE_PASSES, kernel=passes.softmax_online)),
    Pair("repeated-passes", _THREE_OF_HALVES, replace(_THREE_OF_HALVES, kernel=passes.softmax_online)),
    Pair("repeated-stores", _BY_OUTPUT, replace(_BY_OUTPUT, kernel=passes.softmax_again)),
    Pair("widened-product", _IN_FLOATS, replace(_IN_FLOATS, kernel=passes.attend)),
    Pair("product-by-sum", _DISTANCES, replace(_DISTANCES, kernel=passes.distances_by_product)),
    Pair(
        "same-work",
        _CUMULATED,
        replace(_CUMULATED, kernel=passes.cumulate_from, types={**_COPY, "sums": _FLOAT}),
    ),
    Pair("idle-threads", _COLUMNS_OF_MANY, replace(_COLUMNS_OF_MANY, constants={"COLUMNS": 500, "BLOCK": 512}), ""),
    Pair("idle-threads", _ROW_OF_MANY, replace(_ROW_OF_MANY, constants={"BLOCK": 512}), ""),
    Pair("idle-programs", replace(_ALL_OF, grid=1 << 20), _ALL_OF, ""),
    Pair("idle-programs", replace(_ALL_OF_FLOATS, grid=1 << 20), _ALL_OF_FLOATS, ""),
    Pair(
        "atomics-on-one-address",
        replace(_PARTS, grid=64 * 64),
        replace(_PARTS, constants={**_PARTS.constants, "PARTS": 1}, grid=64 * 64, grid_z=1),
    ),
    Pair(
        "masked-turns",
        replace(_CAUSAL, kernel=loops.attend_to_all_while),
        replace(_CAUSAL, kernel=loops.attend_to_earlier),
    ),
    Pair("many-comparisons", _BINS, _TILE_OF_BINS),
    Pair("many-comparisons", replace(_BINS, kernel=comparing.count_by_pairs), _TILE_OF_BINS),
    Pair("many-comparisons", replace(_SUMS_BEFORE, kernel=comparing.sums_before_by_mask), _SUMS_BEFORE),
    Pair(
        "many-comparisons",
        replace(_SUMS_BEFORE, kernel=comparing.sums_before_by_mask, types={"x": _HALF, "out": _HALF}),
        Variant(comparing.sums_of_long_rows, _LOOP, {"BLOCK": 256}),
    ),
    Pair(
        "many-comparisons",
        replace(_SUMS_BEFORE, kernel=comparing.median_by_ranks),
        replace(_SUMS_BEFORE, kernel=comparing.median_by_sort),
    ),
    Pair("many-comparisons", _TOP, replace(_TOP, kernel=comparing.greatest_at_once)),
    Pair("many-comparisons", _TABLE, replace(_TABLE, kernel=comparing.look_up)),
    Pair("many-comparisons", _WRITTEN_BINS, replace(_WRITTEN_BINS, kernel=comparing.count_three_bins)),
    Pair("many-comparisons", _EDGES, replace(_EDGES, kernel=comparing.place_by_halves)),
    Pair("product-by-sum", _DIFFERENCES, replace(_DIFFERENCES, kernel=passes.greatest_differences)),
    Pair(
        "masked-turns",
        _OWN_EDGES,
        Variant(passes.sum_sorted_edges, {**_COPY, "first": "*i32"}, {"WIDTH": 128}),
    ),
    Pair("masked-turns", _OWN_EDGES, replace(_OWN_EDGES, kernel=passes.sum_signed_edges)),
    Pair("masked-turns", replace(_CUMULATED, kernel=passes.sum_number_by_number, types=_LOOP), _SUMS_BEFORE),
    Pair("repeated-loads", _STATE, replace(_STATE, kernel=passes.turn_state_once)),
    Pair("atomics-on-one-address", _UNDER_LOCK, Variant(passes.store_parts, _COPY, {"BLOCK": 1024})),
)
