from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze import work
from bragg.analyze.derived import evaluate, is_derived, list_available, with_host_wait, with_roof_time
from bragg.analyze.specs import WIDTHS
from bragg.analyze.work import own_work
from bragg.errors import UsageError
from bragg.model import Combine, Metric, MetricKind, Profile
from bragg.model.merge import merge
from bragg.model.regroup import regroup
from bragg.model.transform import group_by_name
from tests.support.profiles import profile_from_text
from tests.support.sampled_kernels import sampled_profile
from tests.support.work import B200, H100, H200, RTX_4090, node_named, working_profile

# What triton.profiler.viewer computes of the same kernels on the same devices.
PROTON_UTILS = {"foo0": 0.247044, "foo1": 0.147830, "foo2": 0.118451}


def proton_example() -> Profile:
    return working_profile(
        """
        root
          foo0 204800ns x10 @1
          foo1 204800ns @0
          foo2 204800ns @2
        """,
        [RTX_4090, H100, B200],
        flops8={"foo0": 1e11, "foo1": 1e10, "foo2": 1e11},
        bytes={"foo0": 1e8, "foo1": 1e7, "foo2": 1e7},
    )


def on_h200(text: str, **values: dict[str, float]) -> Profile:
    return working_profile(text, [H200], **values)


def test_util_of_kernels_is_that_of_proton() -> None:
    profile = proton_example()
    util = evaluate(profile, "util")
    found = {label: util.values[node_named(profile, label)] for label in PROTON_UTILS}
    assert found == pytest.approx(PROTON_UTILS, abs=1e-6)


def test_metrics_of_one_profile_share_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    profile, read = on_h200("root\n  foo 100us x2", gpu_dram_bytes={"foo": 1e6}), []
    monkeypatch.setattr(work, "counted_flops", lambda each: read.append(each) or dict.fromkeys(WIDTHS, np.zeros(2)))
    first, second = own_work(profile), own_work(profile)
    assert first is second
    assert read == [profile]
    assert own_work(replace(profile)) is not first


def test_util_over_several_devices_holds_each_kernel_against_its_own_peak() -> None:
    util = evaluate(proton_example(), "util")
    assert util.values[0] == pytest.approx(sum(PROTON_UTILS.values()) / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("avg_time/us", [51.2, 20.48, 204.8, 204.8]),
        ("avg_time/s", [0.0000512, 0.00002048, 0.0002048, 0.0002048]),
        ("time/ms", [0.6144, 0.2048, 0.2048, 0.2048]),
        ("time/ns", [614400, 204800, 204800, 204800]),
        ("time/%", [100, 100 / 3, 100 / 3, 100 / 3]),
        ("gbyte/s", [195.3125, 488.28125, 48.828125, 48.828125]),
        ("tbyte/s", [0.1953125, 0.48828125, 0.048828125, 0.048828125]),
        ("gflop8/s", [341796.875, 488281.25, 48828.125, 488281.25]),
        ("TFLOP8/S", [341.796875, 488.28125, 48.828125, 488.28125]),
        ("tflop/s", [341.796875, 488.28125, 48.828125, 488.28125]),
        ("intensity", [2.1e11 / 1.2e8, 1000, 1000, 10000]),
    ],
)
def test_values_of_derived_metrics(name: str, expected: list[float]) -> None:
    assert evaluate(proton_example(), name).values == pytest.approx(expected)


def test_a_kernel_is_held_against_the_roof_that_binds_it() -> None:
    profile = on_h200(
        "root\n  matmul 1ms @0\n  copy 1ms @0",
        flops16={"matmul": 494e9, "copy": 1e6},
        bytes={"matmul": 1e6, "copy": 2.407e9},
    )
    assert evaluate(profile, "util").values[1:] == pytest.approx([0.5, 0.5], rel=1e-3)


def test_util_of_a_parent_is_the_mean_of_its_kernels_weighted_by_time() -> None:
    profile = on_h200(
        "root\n  step\n    matmul 3ms @0\n    copy 1ms @0", flops16={"matmul": 3 * 494e9}, bytes={"copy": 4.814e9}
    )
    assert evaluate(profile, "util").values[:2] == pytest.approx([(3 * 0.5 + 1) / 4] * 2, rel=1e-3)


def test_flops_of_several_widths_take_their_times_one_after_another() -> None:
    profile = on_h200("root\n  attention 1ms @0", flops8={"attention": 494e9}, flops16={"attention": 494e9})
    assert evaluate(profile, "util").values[1] == pytest.approx(0.25 + 0.5, rel=1e-3)


def test_flops_without_a_width_are_those_of_16_bits_unless_widths_explain_them() -> None:
    profile = on_h200("root\n  a 1ms @0\n  b 1ms @0", flops={"a": 494e9, "b": 494e9}, flops8={"b": 494e9})
    assert evaluate(profile, "util").values[1:] == pytest.approx([0.5, 0.25], rel=1e-3)
    assert evaluate(profile, "gflop/s").values[1:] == pytest.approx([494e3, 494e3])


def test_scopes_with_flops_are_held_against_the_device_of_their_kernels() -> None:
    profile = working_profile(
        "root\n  fused\n    gemm 1ms @1\n  other\n    gemm2 1ms @0", [RTX_4090, H200], flops16={"fused": 494e9}
    )
    util = evaluate(profile, "util")
    assert util.values[node_named(profile, "fused")] == pytest.approx(0.5, rel=1e-3)
    assert util.why_absent(node_named(profile, "gemm")) == "no flops or bytes here or below"


def test_what_has_no_util_says_why() -> None:
    profile = working_profile(
        """
        root
          both
            k0 1ms @0
            k1 1ms @1
          host
          plain 1ms @0
          strange 1ms @2
        """,
        [RTX_4090, H200, {"name": "X1", "arch": "999"}],
        flops16={"both": 1e9, "strange": 1e9},
    )
    util = evaluate(profile, "util")
    reasons = {profile.tree.label(node): util.why_absent(node) for node in range(len(profile.tree))}
    assert np.isnan(util.values).all()
    assert reasons["host"] == "no GPU time here or below"
    assert reasons["plain"] == "no flops or bytes here or below"
    assert "X1: no peaks are known for sm_999" in reasons["strange"]
    assert "different peaks" in reasons["both"]
    assert "X1" in reasons["root"]


def test_devices_that_were_not_recorded_are_no_crash() -> None:
    profile = replace(on_h200("root\n  k 1ms @0", flops={"k": 1e9}), meta={})
    assert evaluate(profile, "util").why_absent(1) == "device 0 was not recorded"


def test_work_that_no_kernel_locates_has_no_util() -> None:
    profile = on_h200("root\n  k 1ms", bytes={"k": 1e9})
    assert evaluate(profile, "util").why_absent(1) == "no kernel below says which device it is about"


@pytest.mark.parametrize("flops", [-5.0, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["flops", "flops16"])
def test_flops_that_are_no_amount_are_named_and_not_divided(name: str, flops: float) -> None:
    profile = on_h200("root\n  k 1ms @0", bytes={"k": 1e6}, **{name: {"k": flops}})
    util = evaluate(profile, "util")
    assert np.isnan(util.values[1])
    assert util.why_absent(1) == "flops or bytes are negative or not finite where they were counted"


def test_util_is_the_same_after_nodes_became_one() -> None:
    profile = with_roof_time(
        working_profile("root\n  k 1ms @0\n  k 1ms @1", [H200, H100], flops16={"k": 494e9}, bytes={"k": 1e6})
    )
    before = evaluate(profile, "util").values[0]
    grouped = group_by_name(profile)
    assert len(grouped.tree) == 2
    assert evaluate(grouped, "util").values == pytest.approx([before, before])
    folded = regroup(profile.tree, folded=np.array([False, True, True])).apply(profile)
    assert evaluate(folded, "util").values == pytest.approx([before])


def test_merged_recordings_keep_a_device_that_they_agree_on() -> None:
    one = on_h200("root\n  k 1ms @0", flops16={"k": 494e9})
    other = replace(one, meta={"devices": [H200], "rank": 1})
    apart = replace(one, meta={"devices": [B200]})
    assert evaluate(merge([one, other]), "util").values[0] == pytest.approx(0.5, rel=1e-3)
    assert evaluate(merge([one, apart]), "util").why_absent(0) == "device 0 was not the same one in all recordings"


def test_host_time_is_cpu_time_unless_there_is_a_metric_of_that_name() -> None:
    profile = profile_from_text("root\n  step host=6ms hostx3")
    assert evaluate(profile, "cpu_time/ms").values == pytest.approx([6, 6])
    assert evaluate(profile, "avg_cpu_time/us").values[1] == pytest.approx(2000)
    own = Metric("cpu_time", "ns", MetricKind.EXCLUSIVE, np.array([0, 500]))
    named = replace(profile, metrics={**profile.metrics, "cpu_time": own})
    assert evaluate(named, "cpu_time/ns").values[1] == 500
    assert np.isnan(evaluate(named, "cpu_time/ns").values[0])


def test_shares_of_an_exclusive_metric_are_of_its_sum() -> None:
    profile = profile_from_text("root\n  a hostx1\n    b hostx3")
    assert evaluate(profile, "host_count/%").values == pytest.approx([0, 25, 75])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("util", "util needs flops or bytes"),
        ("flop16/s", "flop16/s needs flops16"),
        ("flop/s", "flop/s needs flops"),
        ("cpu_time/ms", "cpu_time/ms needs cpu_time"),
        ("nothing/%", "nothing/% needs nothing"),
        ("speed", "there is no derived metric 'speed'"),
        ("time/min", "there is no derived metric 'time/min'"),
        ("byte16/s", "there is no derived metric 'byte16/s'"),
    ],
)
def test_what_cannot_be_computed_is_a_usage_error(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        evaluate(with_roof_time(profile_from_text("root\n  k 1ms")), name)
    assert raised.value.hint


def test_shares_and_own_values_of_a_property_are_refused() -> None:
    profile = profile_from_text("root\n  k 1ms")
    tile = Metric("tile", "", MetricKind.EXCLUSIVE, np.array([0, 64]))
    assert evaluate(replace(profile, metrics={"tile": tile}), "tile/%").values[1] == 100
    largest = Metric("tile", "", MetricKind.PROPERTY, np.array([np.nan, 64]), Combine.MAX)
    with pytest.raises(UsageError, match="does not add up"):
        evaluate(replace(profile, metrics={"tile": largest}), "tile/%")
    with pytest.raises(UsageError, match="does not add up"):
        evaluate(replace(profile, metrics={"tile": largest}), "tile/own")


def test_every_available_metric_can_be_computed_and_all_are_known() -> None:
    profile = proton_example()
    names = list_available(profile)
    assert {"util", "intensity", "tflop/s", "gflop8/s", "byte/s", "time/us", "avg_time/ms", "gpu_count/%"} <= set(names)
    assert "flop16/s" not in names
    assert all(is_derived(name) and not np.isnan(evaluate(profile, name).values).all() for name in names)
    assert not is_derived("gpu_time")


def test_a_gpu_waits_where_the_host_takes_longer_and_does_not_wait_itself() -> None:
    steps = ["aten::mm", "  kernel 3us", "aten::_local_scalar_dense", "data", "aten::copy_", "  copy HtoD"]
    profile = profile_from_text("\n    ".join(["root\n  step", *steps]))
    nodes = [profile.tree.label(node) for node in range(len(profile.tree))]
    host_us = {"step": 1, "aten::mm": 5, "aten::_local_scalar_dense": 100, "aten::copy_": 100, "data": 40}
    host = Metric("host_time", "ns", MetricKind.INCLUSIVE, np.array([1000 * host_us.get(name, 0) for name in nodes]))
    profile = replace(profile, metrics={**profile.metrics, "host_time": host})
    waits = dict(zip(nodes, evaluate(profile, "gpu_wait").values.tolist(), strict=True))
    assert (waits["step"], waits["aten::mm"], waits["data"]) == (43_000, 2_000, 40_000)
    assert np.isnan([waits["aten::_local_scalar_dense"], waits["kernel"]]).all()
    assert "gpu_wait" in list_available(profile)


def test_a_host_that_waits_is_known_after_its_calls_were_put_together() -> None:
    calls = ["cudaMemcpyAsync host=10us", "  copy DtoH 1us", "cudaFree host=5us sync=3us", "aten::mm host=9us"]
    profile = profile_from_text("\n    ".join(["root\n  step host=1us", *calls]))
    folded = np.arange(len(profile.tree)) > 1
    together = regroup(profile.tree, folded=folded).apply(with_host_wait(profile))
    for found in (profile, together):
        assert evaluate(found, "gpu_wait").values[:2].tolist() == [11_000, 11_000]  # 25 - 10 - 3 - 1
    assert evaluate(with_host_wait(together), "gpu_wait").values[1] == 11_000


def test_nothing_is_available_of_an_empty_profile() -> None:
    assert list_available(profile_from_text("root")) == []


def test_own_values_are_those_without_what_ran_below() -> None:
    profile = profile_from_text("root\n  forward\n    outer 5us\n      inner 3us")
    own = evaluate(profile, "gpu_time/own")
    assert (own.unit, own.kind) == ("ns", MetricKind.PROPERTY)
    assert own.values.tolist() == profile.own("gpu_time").tolist()
    assert "gpu_time/own" in list_available(profile)
    assert "gpu_time_min/own" not in list_available(profile)


def test_stalls_of_a_group_are_those_of_its_reasons() -> None:
    profile = sampled_profile()
    assert evaluate(profile, "stall_memory").values[0] == 60
    assert evaluate(profile, "stall_math").values[0] == 15
    assert evaluate(profile, "stall_tensor_core").values[0] == 0
    assert [name for name in list_available(profile) if name.startswith("stall_")] == ["stall_memory", "stall_math"]
    with pytest.raises(UsageError, match="needs samples of instructions"):
        evaluate(proton_example(), "stall_memory")


def counted_profile() -> Profile:
    """Two kernels that counters tell, at half of the bandwidth and with tensor cores, and one that they do not."""
    return on_h200(
        "root\n  step\n    copy 1ms @0\n    matmul 3ms @0\n    short 1ms @0",
        dram_bytes={"copy": 2.407e9, "matmul": 0.6e9},
        tensor_active_time={"matmul": 2.4e6},
        dram_counted_time={"copy": 1e6, "matmul": 3e6},
        tensor_active_counted_time={"copy": 1e6, "matmul": 3e6},
    )


@pytest.mark.parametrize(
    ("name", "step", "copy", "matmul"),
    [
        ("dram_gbs", 3007 / 4, 2407, 200),
        ("share_of_peak", 100 * 3.007e9 / 4e-3 / 4.814e12, 50, 100 * 0.2 / 4.814),
        ("tensor_active", 60, 0, 80),
        ("util", (0.5 + 2.4) / 5, 0.5, 0.8),
    ],
)
def test_shares_of_counters_are_of_what_they_tell(name: str, step: float, copy: float, matmul: float) -> None:
    profile = counted_profile()
    assert name in list_available(profile)
    found = evaluate(profile, name)
    values = [found.values[node_named(profile, label)] for label in ("step", "copy", "matmul")]
    assert values == pytest.approx([step, copy, matmul], rel=1e-3)
    assert np.isnan(found.values[node_named(profile, "short")])
    assert found.why_absent(node_named(profile, "short"))


@pytest.mark.parametrize(
    ("name", "option"), [("tensor_active", ""), ("dram_gbs", ""), ("l2_busy", " l2"), ("pipe_busy", " units")]
)
def test_shares_of_counters_need_these_counters(name: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"{name} needs hardware counters that this profile does not have") as error:
        evaluate(profile_from_text("root\n  k 1ms @0"), name)
    assert error.value.hint == f"bragg run --counters{option}"
