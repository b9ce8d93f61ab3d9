"""Each rule about kernels finds the defect of its broken kernels at its line, and nothing in their repaired twins.

The code is real, compiled by Triton for an H100; times and grids are made up.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import CODE, TEXT
from bragg.analyze.engine import analysis
from bragg.model import Finding, FrameKind
from bragg.model.kernels.configurations import KernelTable
from bragg.registry import RULES

triton = pytest.importorskip("triton")

from tests.support import slow_kernels, slow_loops, slow_passes  # noqa: E402
from tests.support import triton_kernels as kernels  # noqa: E402
from tests.support.compiled_variants import Variant, line_of, profile_of  # noqa: E402
from tests.support.kernel_pairs import PAIRS, Pair  # noqa: E402

pytestmark = pytest.mark.once

# With the text of the program, rules judge several kernels.
KERNEL_RULES = [name for name, rule in RULES.items() if CODE in rule.needs and TEXT not in rule.needs]
FLOAT, HALF, INT = "*fp32", "*fp16", "i32"
MATMUL = Variant(
    kernels.matmul,
    {"a": HALF, "b": HALF, "c": HALF, "M": INT, "N": INT, "K": INT, "am": INT, "bk": INT, "cm": INT},
    {"ak": 1, "bn": 1, "cn": 1, "BM": 128, "BN": 128, "BK": 64},
    options={"num_warps": 8},
)
ATTENTION = Variant(
    kernels.attention,
    {"Q": FLOAT, "K": FLOAT, "V": FLOAT, "out": FLOAT, "scale": "fp32", "N": INT},
    {"D": 64, "BM": 64, "BN": 64, "CAUSAL": True},
)
WELL_WRITTEN = [
    Variant(slow_kernels.rotate_pairs, {"x": FLOAT, "out": FLOAT}, {"BLOCK": 1024}),
    Variant(kernels.add, {"x": "*fp64", "y": "*fp64", "out": "*fp64", "n": INT}, {"BLOCK": 1024}),
    Variant(kernels.add, {"x": FLOAT, "y": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(kernels.softmax, {"out": FLOAT, "x": FLOAT, "stride": INT, "n": INT}, {"BLOCK": 1024}),
    MATMUL,
    replace(MATMUL, constants={**MATMUL.constants, "BM": 16, "BN": 64}, options={"num_warps": 4}),
    Variant(kernels.gather_rows, {"x": FLOAT, "index": "*i64", "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(kernels.histogram, {"x": "*i32", "counts": "*i32", "n": INT}, {"BLOCK": 1024}, grid=1 << 14),
    Variant(
        kernels.locked_sum,
        {"x": FLOAT, "out": FLOAT, "lock": "*i32", "count": "*i32"},
        {"GROUPS": 64, "BLOCK": 1024},
    ),
    Variant(kernels.random_numbers, {"out": FLOAT, "seed": INT}, {"BLOCK": 1024}),
    Variant(kernels.copy_by_descriptor, {"x": FLOAT, "out": FLOAT, "M": INT, "N": INT}, {"BM": 64, "BN": 64}),
    Variant(
        kernels.sum_by_last,
        {"x": FLOAT, "part": FLOAT, "out": FLOAT, "counter": "*i32", "n": INT},
        {"BLOCK": 1024, "PROGRAMS": 128},
    ),
    Variant(kernels.along_axes, {"x": FLOAT, "out": FLOAT}, {"N": 512}),
    Variant(slow_loops.add_bias_by_index, {"x": FLOAT, "bias": FLOAT, "out": FLOAT}, {"CHANNELS": 4096, "BLOCK": 1024}),
    Variant(slow_loops.count_each_row, {"x": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(slow_loops.root_of_power, {"x": FLOAT, "out": FLOAT}, {"BLOCK": 1024}),
    Variant(slow_loops.store_the_last_row, {"x": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    *(
        Variant(
            kernel,
            {"q": HALF, "k": HALF, "v": HALF, "out": HALF, "n": INT},
            {"BM": 64, "BN": 64, "D": 64},
        )
        for kernel in (slow_loops.attend_up_to_length, slow_loops.attend_with_signs, slow_loops.attend_to_others)
    ),
    # What is slow in them hides behind their loads, or loads nothing: twins were no faster on an H100.
    Variant(slow_passes.mean_of_padded, {"x": FLOAT, "lengths": "*i32", "out": FLOAT}, {"MOST": 8192, "BLOCK": 1024}),
    Variant(slow_kernels.sum_in_loop, {"x": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(slow_kernels.mean_square, {"x": FLOAT, "out": FLOAT, "n": INT, "eps": "fp32"}, {"BLOCK": 1024}),
    Variant(
        slow_kernels.add_periodic, {"x": FLOAT, "out": FLOAT, "n": INT, "bias": FLOAT, "period": INT}, {"BLOCK": 1024}
    ),
    Variant(
        slow_passes.product_of_parts,
        {"a": HALF, "b": HALF, "c": FLOAT, "K": INT},
        {"PARTS": 4, "BM": 64, "BN": 64, "BK": 32},
    ),
    Variant(slow_passes.convolve, {"x": FLOAT, "weights": FLOAT, "out": FLOAT, "n": INT}, {"TAPS": 7, "BLOCK": 1024}),
    Variant(slow_passes.sum_above_mean, {"x": FLOAT, "means": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(slow_passes.add_and_norm, {"x": FLOAT, "y": FLOAT, "sums": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(slow_passes.waves, {"x": FLOAT, "out": FLOAT}, {"BLOCK": 1024}),
    Variant(slow_loops.flip, {"x": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
    Variant(slow_loops.double_rows_of_four, {"x": FLOAT, "out": FLOAT}, {"BLOCK": 256}),
    Variant(slow_loops.weigh_groups, {"x": FLOAT, "weights": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024}),
]

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.broken.name}")

_found: dict[str, list[Finding]] = {}


def found(variant: Variant) -> list[Finding]:
    """What the rules about kernels find; twins of several pairs are analysed once."""
    key = repr(variant)
    if key not in _found:
        _found[key] = analysis(Evidence(profile_of(variant)), KERNEL_RULES).findings
    return _found[key]


def test_each_rule_about_kernels_has_two_pairs() -> None:
    assert [name for name in KERNEL_RULES if sum(pair.rule == name for pair in PAIRS) < 2] == []


def test_a_barrier_before_which_other_threads_write_is_needed() -> None:
    kernel = Variant(slow_kernels.sum_of_neighbours, {"x": FLOAT, "out": FLOAT, "n": INT}, {"BLOCK": 1024})
    assert "idle-barrier" not in {each.rule for each in found(kernel)}


def test_outer_products_whose_sum_each_turn_needs_are_no_product_of_matrices() -> None:
    types = {"a": FLOAT, "b": FLOAT, "c": FLOAT, "K": INT}
    kernel = Variant(slow_loops.running_sum_of_outer, types, {"BM": 64, "BN": 64})
    assert "product-by-sum" not in {each.rule for each in found(kernel)}


@every_pair
def test_the_defect_is_named_at_its_line(pair: Pair) -> None:
    (finding,) = [each for each in found(pair.broken) if each.rule == pair.rule]
    assert finding.kernel == pair.broken.name
    if pair.broken.name in ("scale_and_print", "add_under_lock"):  # how long what they wait for takes is not known
        assert finding.gain is None
    else:
        assert finding.gain is not None
        assert 0 < finding.gain.share < 1
    assert finding.hint
    assert finding.evidence
    if pair.mark:
        assert finding.file == inspect.getsourcefile(pair.broken.kernel.fn)
        assert finding.line == line_of(pair.broken.kernel, pair.mark)


@pytest.mark.parametrize("rule", ["idle-threads", "small-tiles", "too-many-stages", "old-tensor-cores"])
def test_a_launch_that_is_to_be_changed_is_named_first(rule: str) -> None:
    pair = next(each for each in PAIRS if each.rule == rule)
    profile = profile_of(pair.broken)
    frames = profile.tree.frames
    row = frames.name.index("step")
    kind, file, line = frames.kind.copy(), list(frames.file), frames.line.copy()
    kind[row], file[row], line[row] = FrameKind.PYTHON, "train.py", 12
    tree = replace(profile.tree, frames=replace(frames, kind=kind, file=file, line=line))
    (finding,) = [
        each for each in analysis(Evidence(replace(profile, tree=tree)), [rule]).findings if each.rule == rule
    ]
    assert (finding.file, finding.line) == ("train.py", 12)
    assert finding.places[0].file == inspect.getsourcefile(pair.broken.kernel.fn)


def test_sizes_of_the_first_launch_say_nothing_of_other_grids() -> None:
    pair = next(each for each in PAIRS if each.rule == "idle-programs")
    profile = profile_of(pair.broken)
    columns = {name: np.repeat(getattr(profile.kernels, name), 2) for name in KernelTable.columns()}
    columns["grid_x"][1] *= 2
    with_others = replace(profile, kernels=KernelTable(**columns))
    assert analysis(Evidence(with_others), ["idle-programs"]).findings == []


@every_pair
def test_the_repaired_twin_has_no_finding(pair: Pair) -> None:
    assert [(each.rule, each.message) for each in found(pair.repaired)] == []


@pytest.mark.parametrize("variant", WELL_WRITTEN, ids=lambda variant: variant.name)
def test_a_well_written_kernel_has_no_finding(variant: Variant) -> None:
    assert [(each.rule, each.message) for each in found(variant)] == []


@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_of_floats_only_has_an_operand_that_is_turned_around(is_causal: bool) -> None:
    (finding,) = found(replace(ATTENTION, constants={**ATTENTION.constants, "CAUSAL": is_causal}))
    assert (finding.rule, finding.evidence[0].value) == ("bank-conflicts", 8)
    lines, first = inspect.getsourcelines(kernels.attention.fn)
    assert "tl.load(V" in lines[finding.line - first]


def test_a_kernel_that_hides_behind_the_host_gains_nothing() -> None:
    (pair, *_) = [pair for pair in PAIRS if pair.rule == "narrow-access"]
    profile = profile_of(pair.broken)
    mostly_idle = {**profile.meta, "gpu_last_ns": profile.meta["gpu_last_ns"] * 10}
    (finding,) = analysis(Evidence(replace(profile, meta=mostly_idle)), KERNEL_RULES).findings
    assert finding.gain is not None
    assert (finding.gain.wall_ns, finding.gain.limit) == (0, "the host")


def test_elements_that_share_sectors_count_less() -> None:
    (finding,) = found(Variant(slow_kernels.copy_first_of_eight, {"x": "*fp16", "out": "*fp16"}, {"BLOCK": 1024}))
    assert "16 B move for each 2 B" in finding.message
    assert finding.line == line_of(slow_kernels.copy_first_of_eight)
