from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.counted_flops import counted_flops
from bragg.analyze.derived import evaluate, list_available
from bragg.analyze.roofline import roofline
from bragg.code.sass.listing import Instruction, format_listing
from bragg.code.source_map import Stage, source_name
from bragg.errors import UsageError
from bragg.formats.captured.growth import padded
from bragg.model import KernelTable, Profile
from bragg.model.kernels.counted import COUNTED_LAUNCHES, EXECUTED, THREADS
from bragg.views.text.roofline_text import roofline_lines
from bragg.views.text.style import Style
from tests.support.profiles import profile_from_text
from tests.support.work import B200, H200, node_named, working_profile


def test_the_arithmetic_intensity_chooses_the_roof() -> None:
    chart = roofline(
        working_profile(
            "root\n  matmul 2ms x4 @0\n  softmax 1ms @0",
            [H200],
            flops16={"matmul": 988.24e9, "softmax": 4.814e9},
            bytes={"matmul": 1e8, "softmax": 2.407e9},
        )
    )
    matmul, softmax = chart.points
    assert (matmul.name, matmul.bound, softmax.name, softmax.bound) == ("matmul", "compute", "softmax", "memory")
    assert matmul.util == pytest.approx(0.5, rel=1e-3)
    assert softmax.util == pytest.approx(0.5, rel=1e-3)
    assert softmax.intensity == pytest.approx(2)
    assert matmul.flops_per_s == pytest.approx(494.12e12)
    assert softmax.bytes_per_s == pytest.approx(2.407e12)
    assert (chart.time_ns, chart.widths) == (3e6, (16,))
    assert chart.roofs[0].device == "NVIDIA H200"


def test_a_kernel_is_one_point_for_each_kind_of_device() -> None:
    chart = roofline(
        working_profile(
            "root\n  a\n    k 1ms @0\n  b\n    k 2ms @0\n  c\n    k 4ms @1",
            [H200, B200],
            flops16={"k": 1e9},
            bytes={"k": 1e6},
        )
    )
    assert [(point.roof, point.time_ns, point.flops) for point in chart.points] == [(1, 4e6, 1e9), (0, 3e6, 2e9)]


def test_a_scope_with_flops_has_the_time_of_its_kernels() -> None:
    (point,) = roofline(
        working_profile(
            "root\n  fused\n    a 1ms @0\n    b 2ms @0", [H200], flops16={"fused": 1e9}, bytes={"fused": 1e6}
        )
    ).points
    assert (point.name, point.time_ns, point.absent) == ("fused", 3e6, "")


@pytest.mark.parametrize(
    ("text", "values", "absent"),
    [
        ("root\n  k 1ms @0", {"bytes": {"k": 1e6}}, "no flops"),
        ("root\n  k 1ms @0", {"flops": {"k": 1e6}}, "no bytes"),
        ("root\n  k 1ms @0\n  s", {"flops": {"s": 1e6}, "bytes": {"s": 1e6}}, "no GPU time"),
        ("root\n  k 1ms", {"flops": {"k": 1e6}, "bytes": {"k": 1e6}}, "its device is unknown"),
        ("root\n  s\n    k 1ms @0\n    k 1ms @1", {"flops": {"s": 1e6}, "bytes": {"s": 1e6}}, "different peaks"),
        ("root\n  k 1ms @2", {"flops": {"k": 1e6}, "bytes": {"k": 1e6}}, "X1: no peaks are known for sm_999"),
    ],
)
def test_a_point_without_a_place_says_why(text: str, values: dict[str, dict[str, float]], absent: str) -> None:
    chart = roofline(working_profile(text, [H200, B200, {"name": "X1", "arch": "999"}], **values))
    assert absent in chart.points[0].absent


def test_without_roof_there_is_no_bound_and_no_util() -> None:
    (point,) = roofline(
        working_profile("root\n  k 1ms @0", [{"arch": "999"}], flops={"k": 1e6}, bytes={"k": 1e6})
    ).points
    assert (point.bound, point.util) == (None, None)


def test_a_profile_without_flops_and_bytes_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="nothing in this profile has flops or bytes") as raised:
        roofline(profile_from_text("root\n  k 1ms"))
    assert "launch_metadata" in raised.value.hint
    with pytest.raises(UsageError, match="no GPU time was recorded"):
        roofline(profile_from_text("root"))


def test_launches_that_were_counted_stand_for_the_others_of_their_node() -> None:
    chart = roofline(
        working_profile("root\n  copy 4ms @0", [H200], dram_bytes={"copy": 3.8512e9}, dram_counted_time={"copy": 1e6})
    )
    assert chart.points[0].util == pytest.approx(0.8, rel=1e-3)


def test_bytes_alone_tell_no_bound_of_a_kernel_that_leaves_bandwidth() -> None:
    chart = roofline(
        working_profile("root\n  copy 1ms @0\n  matmul 3ms @0", [H200], dram_bytes={"copy": 3.8512e9, "matmul": 0.6e9})
    )
    matmul, copy = chart.points
    assert (matmul.bound, matmul.util) == (None, None)
    assert (copy.bound, copy.util) == ("memory", pytest.approx(0.8, rel=1e-3))
    text = "\n".join(roofline_lines(chart, Style()))
    assert "bytes of DRAM alone: kernels that reach 60 % of none of these are bound by something else." in text
    assert "Not measured: L2 (bragg run --counters l2), tensor cores (bragg run --counters)." in text


def test_measured_bytes_and_tensor_cores_give_a_roof_without_flops() -> None:
    chart = roofline(
        working_profile(
            "root\n  copy 1ms @0\n  matmul 3ms @0",
            [H200],
            dram_bytes={"copy": 3.8512e9, "matmul": 0.6e9},
            tensor_active_time={"matmul": 2.4e6},
        )
    )
    matmul, copy = chart.points
    assert chart.is_measured
    assert (matmul.name, matmul.bound, matmul.util) == ("matmul", "compute", pytest.approx(0.8))
    assert (copy.name, copy.bound, copy.util) == ("copy", "memory", pytest.approx(0.8, rel=1e-3))
    assert copy.absent == "counters tell no flops"


def test_a_kernel_that_reaches_no_peak_is_bound_by_what_was_not_counted() -> None:
    profile = working_profile(
        "root\n  product 1ms @0", [H200], dram_bytes={"product": 0.6e9}, tensor_active_time={"product": 0.39e6}
    )
    chart = roofline(profile)
    (product,) = chart.points
    assert (product.bound, product.util) == (None, pytest.approx(0.39))
    assert "Not measured: L2 (bragg run --counters l2)." in "\n".join(roofline_lines(chart, Style()))


def test_a_busy_l2_is_what_bounds_a_kernel() -> None:
    chart = roofline(
        working_profile(
            "root\n  product 2ms @0\n  copy 1ms @0",
            [H200],
            dram_bytes={"product": 1.2e9, "copy": 3.8512e9},
            l2_busy_time={"product": 1.84e6, "copy": 0.5e6},
        )
    )
    product, copy = chart.points
    assert (product.bound, product.bounding_cache, product.util) == ("memory", "L2", pytest.approx(0.92))
    assert (copy.bound, copy.bounding_cache) == ("memory", "")
    lines = roofline_lines(chart, Style())
    assert "Hardware counters measured bytes of DRAM alone and of L2." in lines
    assert [line.split()[-2:] for line in lines[-2:]] == [["L2", "product"], ["memory", "copy"]]


def test_where_all_units_were_counted_a_kernel_that_keeps_none_busy_waits_for_latency() -> None:
    busy = ("dram", "l1_busy", "l2_busy", "pipe_busy")
    profile = working_profile(
        "root\n  product 2ms @0\n  wait 1ms @0\n  short 1ms @0",
        [H200],
        dram_bytes={"product": 1.2e9, "wait": 1e9, "short": 1e9},
        l1_busy_time={"product": 1.84e6, "wait": 0.2e6},
        l2_busy_time={"product": 1e6, "wait": 0.5e6},
        pipe_busy_time={"product": 1.5e6, "wait": 0.1e6},
        **{f"{unit}_counted_time": {"product": 2e6, "wait": 1e6} for unit in busy},
    )
    chart = roofline(profile)
    assert {each.name: (each.bound, each.bounding_cache, each.is_bound_by_latency) for each in chart.points} == {
        "product": ("memory", "L1", False),
        "wait": (None, "", True),
        "short": (None, "", False),
    }
    lines = roofline_lines(chart, Style())
    assert "bytes of DRAM and the time of pipelines and of L1 and of L2" in "\n".join(lines)
    assert [line.split()[-2:] for line in lines[-3:-1]] == [["L1", "product"], ["latency", "wait"]]


def counted_profile(**counters: dict[str, float]) -> Profile:
    """A product of which 2 launches were counted, by instruction, and 3 timed."""
    profile = working_profile(
        """
        root
          matmul 3ms x3 @0
            matmul.py:5@matmul #line
              +0x0 #line
              +0x10 #line
          copy 1ms @0
        """,
        [H200],
        **{
            EXECUTED: {"+0x0": 4e6, "+0x10": 1e3},
            THREADS: {"+0x0": 128e6, "+0x10": 32e3},
            COUNTED_LAUNCHES: {"matmul": 2},
        },
        **counters,
    )
    code = ["HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;", "FFMA R2, R3, R4, R5 ;"]
    listing = format_listing([Instruction(16 * at, text, (), 2) for at, text in enumerate(code)])
    attributes = {"matmul": {"code": "matmul/0123abcd"}}
    sources = {source_name("matmul/0123abcd", Stage.SASS): listing}
    return replace(profile, meta={**profile.meta, "attributes": attributes}, sources=sources)


def test_instructions_that_were_counted_give_flops_of_all_launches() -> None:
    chart = roofline(counted_profile(dram_bytes={"matmul": 1e9, "copy": 3e9}))
    matmul, copy = chart.points
    products, sums = 1.5 * 4e6 * 2 * 64 * 128 * 16 / 4, 1.5 * 2 * 32e3
    assert (matmul.flops, chart.widths) == (products + sums, (16, 32))
    assert matmul.compute_ns == pytest.approx((products / 988.24e12 + sums / 494.12e12) * 1e9, rel=1e-3)
    assert (matmul.bound, matmul.absent) == ("compute", "")
    assert (copy.flops, copy.absent) == (0, "counters tell no flops")
    text = "\n".join(roofline_lines(chart, Style()))
    assert "Instructions that were counted give flops of kernels, hardware counters their bytes of DRAM." in text


@pytest.mark.parametrize(("grids", "is_known"), [((64,), True), ((64, 128), False), ((), False)])
def test_launches_at_a_path_without_counts_have_the_flops_of_one_configuration(
    grids: tuple[int, ...], is_known: bool
) -> None:
    profile = counted_profile(dram_bytes={"matmul": 1e9})
    tree, node = profile.tree, node_named(profile, "matmul")
    elsewhere = replace(
        tree, parent=np.append(tree.parent, 0).astype(np.int32), frame=np.append(tree.frame, tree.frame[node])
    )
    metrics = {name: padded(metric, len(elsewhere)) for name, metric in profile.metrics.items()}
    metrics["gpu_count"].own[-1] = 1
    columns = {name: np.zeros(len(grids), np.int64) for name in KernelTable.columns()}
    columns |= {"frame": np.full(len(grids), tree.frame[node]), "grid_x": np.array(grids, np.int64)}
    found = counted_flops(replace(profile, tree=elsewhere, metrics=metrics, kernels=KernelTable(**columns)))
    counted = 1.5 * 4e6 * 2 * 64 * 128 * 16 / 4
    assert found[16][node] == counted
    assert found[16][-1] == (counted / 3 if is_known else 0)


def test_rates_of_counted_instructions_stand_in_the_tree() -> None:
    profile = counted_profile(dram_bytes={"matmul": 1e9, "copy": 3e9})
    assert {"tflop/s", "intensity"} <= set(list_available(profile))
    matmul = roofline(profile).points[0]
    node = node_named(profile, "matmul")
    assert evaluate(profile, "flop/s").values[node] == pytest.approx(matmul.flops_per_s)
    assert evaluate(profile, "intensity").values[node] == pytest.approx(matmul.flops / 1e9)


def test_time_of_tensor_cores_is_part_of_the_flops_that_were_counted() -> None:
    matmul, _ = roofline(
        counted_profile(dram_bytes={"matmul": 1e9, "copy": 3e9}, tensor_active_time={"matmul": 9e6})
    ).points
    assert matmul.compute_ns == pytest.approx(matmul.flops / 988.24e12 * 1e9, rel=1e-3)


def test_without_bytes_counted_instructions_tell_the_rate_and_no_roof() -> None:
    (matmul,) = roofline(counted_profile()).points
    assert matmul.flops_per_s == pytest.approx(1.5 * (4e6 * 65536 + 64e3) / 3e-3)
    assert (matmul.bound, matmul.util, matmul.absent) == (None, None, "no bytes")
