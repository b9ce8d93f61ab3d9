from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.grouping.regions import group_by_region, step_function
from bragg.model import Metric, MetricKind, Profile
from bragg.views.text.region_notes import region_notes
from tests.support.profiles import profile_from_text

MS = 1_000_000
EACH = "of the host each, without tracing and compiling"
# What 100 us, 600 us and 1 ms are as buckets: 16 an octave.
BUCKETS = {100_000: "216", 600_000: "258", 1_000_000: "270"}

TEXT = """
    root
      copy 1us
      torch: data
        copy 2us
      torch: forward
        Net
          aten::mm #operator
            kernel 5us
            [backward] #state
              MmBackward0 #operator
                kernel 7us
                [recompute] #state
                  kernel 3us
      torch: backward
        autograd::engine::evaluate_function: torch::autograd::AccumulateGrad #operator
          kernel 17us
      torch: optimizer
        torch: forward
          kernel 11us
        Optimizer.step#SGD.step #operator
          kernel 19us
"""


def times(count: int, total_ns: int, each_ns: int, in_steps_ns: int | None = None) -> dict[str, Any]:
    in_steps = total_ns if in_steps_ns is None else in_steps_ns
    buckets = {BUCKETS[each_ns]: count}
    return {"count": count, "total_ns": total_ns, "in_steps_ns": in_steps, "buckets": buckets}


def recorded(data_ns: int = 400_000) -> Profile:
    regions = {
        "step": times(2, 2 * MS, MS),
        "data": times(4, data_ns, 100_000),
        "forward": times(2, 1_200_000, 600_000, 600_000),
    }
    profile = profile_from_text(dedent(TEXT))
    return replace(profile, meta={**profile.meta, "regions": regions})


def rows(profile: Profile, metric: str) -> dict[str, float]:
    values = profile.inclusive(metric)
    return {profile.tree.label(node): values[node].item() for node in range(1, len(profile.tree))}


def test_gpu_time_belongs_to_the_innermost_region_and_to_the_backward_pass_wherever_that_stands() -> None:
    grouped = group_by_region(recorded())
    grouped.check()
    microseconds = {name: value / 1000 for name, value in rows(grouped, "gpu_time").items()}
    assert microseconds == {"data": 2, "forward": 16, "backward": 27, "optimizer": 19, "other": 1}


def test_regions_share_the_steps_and_leave_a_rest() -> None:
    grouped = group_by_region(recorded())
    assert rows(grouped, "region_time") == {
        "data": 400_000,
        "forward": 600_000,
        "backward": 0,
        "optimizer": 0,
        "other": MS,
    }
    assert grouped.own("region_calls").tolist() == [2, 4, 2, 0, 0, 0]
    assert grouped.own("region_time_mean")[:3].tolist() == [MS, 100_000, 600_000]
    assert grouped.own("region_time_p50")[:3] == pytest.approx([MS, 100_000, 600_000], rel=0.032)
    assert np.isnan(grouped.own("region_time_p95")[3:]).all()


def test_rows_are_those_of_the_gpu_where_some_regions_have_no_time() -> None:
    assert next(iter(group_by_region(recorded()).metrics)) == "gpu_time"
    assert next(iter(group_by_region(replace(recorded(), metrics={})).metrics)) == "region_time"


def test_without_steps_times_are_those_of_the_run() -> None:
    profile = recorded()
    profile = replace(profile, meta={"regions": {"forward": profile.meta["regions"]["forward"]}})
    grouped = group_by_region(profile)
    assert grouped.total("region_time") == 1_200_000
    assert region_notes(profile, grouped) == ["no optimizer made a step: times are those of the whole run"]


def test_a_gpu_that_waits_for_data_is_told_from_one_that_waits_for_the_host() -> None:
    slow, fast = recorded(data_ns=900_000), recorded(data_ns=1000)
    assert "waits for data, 45 % of it" in region_notes(slow, group_by_region(slow))[1]
    assert "waits for the CPU" in region_notes(fast, group_by_region(fast))[1]
    assert "other holds 70 % of a step" in region_notes(fast, group_by_region(fast))[2]


def test_modules_are_forward_unless_they_are_computed_again() -> None:
    text = """
        root
          Net
            kernel 1us
            [backward] #state
              [recompute] #state
                Net
                  kernel 2us
    """
    profile = replace(profile_from_text(dedent(text)), meta={"attributes": {"Net": {"module": "Net"}}})
    assert rows(group_by_region(profile), "gpu_time") == {
        "data": 0,
        "forward": 1000,
        "backward": 2000,
        "optimizer": 0,
        "other": 0,
    }


def test_compiled_code_is_forward_unless_a_region_says_otherwise() -> None:
    text = """
        root
          Torch-Compiled Region: loss train.py:4 (0/0) #operator
            kernel 1us
            [backward] #state
              kernel 2us
          torch: optimizer
            Torch-Compiled Region: step sgd.py:9 (1/0) #operator
              kernel 4us
    """
    times_ns = rows(group_by_region(profile_from_text(dedent(text))), "gpu_time")
    assert times_ns == {"data": 0, "forward": 1000, "backward": 2000, "optimizer": 4000, "other": 0}


def test_the_steps_of_jax_are_its_jitted_functions() -> None:
    text = "root\n  jit(step) #operator\n    mul\n      k 1us\n    [backward] #state\n      k 2us"
    profile = profile_from_text(text)
    calls = np.where(np.arange(len(profile.tree)) == 1, 4, 0)
    count = Metric("host_count", "1", MetricKind.EXCLUSIVE, calls)
    time = Metric("host_time", "ns", MetricKind.INCLUSIVE, calls * 5 * MS)
    profile = replace(profile, metrics={**profile.metrics, "host_count": count, "host_time": time})
    grouped = group_by_region(profile)
    assert rows(grouped, "gpu_time") == {"data": 0, "forward": 1000, "backward": 2000, "optimizer": 0, "other": 0}
    assert region_notes(profile, grouped) == [f"jit(step): 4 calls, 5.00 ms {EACH}"]


def test_the_calls_that_take_most_time_besides_compiling_are_the_steps_of_jax() -> None:
    step, rare = times(4, 20 * MS, 600_000), times(2, 5 * MS, 100_000)
    functions = {"jit(step)": {**step, "called_ns": 2_250_000}, "jit(rare)": {**rare, "called_ns": 4_500_000}}
    recorded_steps = {f"step of {name}": value for name, value in functions.items()}
    profile = profile_from_text("root\n  jit(step) #operator host=8ms hostx4\n  jit(rare) #operator host=9ms hostx2")
    profile = replace(profile, meta={"regions": {**recorded_steps, "step of jit(x)": {"called_ns": "x"}, "step of": 3}})
    grouped = group_by_region(profile)
    assert step_function(profile.meta) == "jit(step)"
    assert (grouped.own("region_calls")[0], grouped.total("region_time")) == (4, 20 * MS)
    assert region_notes(profile, grouped) == [
        "4 steps, calls of jit(step), each from the end of the one before",
        f"jit(rare): 2 calls, 4.50 ms {EACH}",
        f"jit(step): 4 calls, 0.75 ms {EACH}",
    ]
    of_torch = {"regions": {**profile.meta["regions"], "step": times(1, MS, MS)}}
    assert step_function(of_torch) == ""
    assert group_by_region(replace(profile, meta=of_torch)).total("region_time") == MS


def test_what_compilers_of_jax_run_and_take_is_of_no_step() -> None:
    profile = profile_from_text("""
root
  jit(step) #operator host=3ms hostx2
    [compile] jit_step host=10ms hostx1
      autotune host=7s hostx1
        candidate 5ms
    k 1ms
""")
    grouped = group_by_region(profile)
    assert rows(grouped, "gpu_time") == {"data": 0, "forward": MS, "backward": 0, "optimizer": 0, "other": 5 * MS}
    assert region_notes(profile, grouped) == [f"jit(step): 2 calls, 1.50 ms {EACH}"]


@pytest.mark.parametrize(("called_ms", "each"), [(None, "3.00"), (199, "1.00")])
def test_a_first_call_that_is_traced_is_no_usual_call(called_ms: int | None, each: str) -> None:
    """Of 200 calls the first one is traced for 2 s in Python, and in native code."""
    profile = profile_from_text("""
root
  jit(step) #operator host=600ms hostx200
    /x/site-packages/jax/_src/traceback_util.py:195@reraise
      /x/site-packages/jax/_src/linear_util.py:224@call_wrapped
        train.py:7@step host=2s
    [compile] jit_step host=100ms hostx1
    k 1us
""")
    step = {**times(200, 3_000 * MS, MS), "called_ns": (called_ms or 0) * MS}
    profile = replace(profile, meta={"regions": {"step of jit(step)": step}} if called_ms else {})
    (*_, line) = region_notes(profile, group_by_region(profile))
    assert line == f"jit(step): 200 calls, {each} ms {EACH}"


def test_operators_alone_tell_regions_of_the_gpu() -> None:
    grouped = group_by_region(replace(recorded(), meta={}))
    assert "region_time" not in grouped.metrics
    assert grouped.total("gpu_time") == 65_000
    assert region_notes(recorded(), grouped) == [
        "times of regions n/a: the program was killed, or recorded without --regions"
    ]


@pytest.mark.parametrize(
    "damaged", [3, {"step": 5}, {"step of f": {"called_ns": 5}}, {"step": {"count": -1}}, {"data": {"buckets": []}}]
)
def test_facts_that_are_none_are_left_out(damaged: Any) -> None:
    profile = profile_from_text("root\n  kernel 5us")
    with pytest.raises(UsageError, match="no region of a training program was recorded") as raised:
        group_by_region(replace(profile, meta={"regions": damaged}))
    assert "--regions all" in raised.value.hint


def test_regions_of_a_process_without_gpu_time_or_times_of_its_own_are_none() -> None:
    with pytest.raises(UsageError, match="no region of a training program was recorded"):
        group_by_region(Profile({}, profile_from_text("root\n  torch: data").tree))
