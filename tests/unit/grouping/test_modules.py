from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from bragg.errors import UsageError
from bragg.grouping.modules import group_by_module
from bragg.model import Profile
from tests.support.profiles import profile_from_text

TEXT = """
    root
      a.py:1@train
        Net
          Net.one
            aten::mm #operator
              kernel 5us
              [backward] #state
                MmBackward0 #operator
                  kernel 7us
          Net.two
            kernel 11us
        loss
          [backward] #state
            kernel 13us
        autograd::engine::evaluate_function: torch::autograd::AccumulateGrad #operator
          kernel 17us
        Optimizer.step#SGD.step #operator
          kernel 19us
          Net.one [update]
            kernel 4us
          Net.closure
            kernel 1us
            [backward] #state
              [recompute] #state
                Net.again
                  kernel 2us
"""


def recorded() -> Profile:
    profile = profile_from_text(dedent(TEXT))
    names = ("Net", "Net.one", "Net.two", "Net.closure", "Net.again")
    attributes = {name: {"module": "Linear"} for name in names} | {"Net.one [update]": {"updates": "Net.one"}}
    return replace(profile, meta={**profile.meta, "attributes": attributes})


def test_modules_have_the_time_of_each_phase() -> None:
    grouped = group_by_module(recorded(), "gpu_time")
    grouped.check()
    tree = grouped.tree
    times = {
        tree.label(node): tuple(
            int(grouped.inclusive(name)[node]) // 1000 for name in ("gpu_time", "forward", "backward", "optimizer")
        )
        for node in range(len(tree))
    }
    assert times == {
        "root": (79, 17, 39, 23),
        "Net (Linear)": (23, 16, 7, 0),
        "Net.one (Linear)": (12, 5, 7, 0),
        "Net.two (Linear)": (11, 11, 0, 0),
        "SGD.step": (26, 1, 2, 23),
        "Net.one [update]": (4, 0, 0, 4),
        "Net.closure (Linear)": (3, 1, 2, 0),
        "Net.again (Linear)": (2, 0, 2, 0),
    }
    with_optimizer = [tree.label(node) for node in range(len(tree)) if grouped.metrics["optimizer"].has_value[node]]
    assert sorted(with_optimizer) == ["Net.one [update]", "SGD.step"]  # in the others it is not 0, there is none


def test_modules_that_a_checkpoint_calls_again_stay_where_they_were_called_first() -> None:
    text = """
        root
          Net
            Net.one
              Net.one.a
                kernel 5us
              Net.one.b
                kernel 3us
                [backward] #state
                  [recompute] #state
                    Net.one
                      Net.one.a
                        kernel 4us
                      Net.new
                        kernel 1us
                    Net.two
                      kernel 2us
            Net.two
              kernel 6us
        """
    names = ("Net", "Net.one", "Net.one.a", "Net.one.b", "Net.new", "Net.two")
    profile = profile_from_text(dedent(text))
    meta = {**profile.meta, "attributes": {name: {"module": "Linear"} for name in names}}
    grouped = group_by_module(replace(profile, meta=meta), "gpu_time")
    tree = grouped.tree
    times = {
        " > ".join(tree.label(above).partition(" ")[0] for above in tree.path(node)[1:]): tuple(
            int(grouped.inclusive(name)[node]) // 1000 for name in ("forward", "backward")
        )
        for node in range(1, len(tree))
    }
    assert times == {
        "Net": (14, 7),
        "Net > Net.one": (8, 5),
        "Net > Net.one > Net.one.a": (5, 4),
        "Net > Net.one > Net.one.b": (3, 0),
        "Net > Net.one > Net.new": (0, 1),
        "Net > Net.two": (6, 2),
    }


def test_a_module_has_the_number_of_its_own_calls_and_not_those_of_what_it_calls() -> None:
    text = "root\n  data hostx9\n  Net host=2us hostx2\n    aten::mm host=4us hostx6\n    Net.one host=1us hostx4"
    profile = profile_from_text(text)
    meta = {**profile.meta, "attributes": {name: {"module": "Linear"} for name in ("Net", "Net.one")}}
    grouped = group_by_module(replace(profile, meta=meta), "host_time")
    assert grouped.own("host_count").tolist() == [0, 2, 4]
    assert grouped.inclusive("host_time").tolist() == [7000, 7000, 1000]


@pytest.mark.parametrize(("kernel", "backward_ms"), [("kernel 1us", 10), ("aten::add host=1us", 18)])
def test_the_wait_for_the_thread_of_a_backward_pass_does_not_count_beside_it(kernel: str, backward_ms: int) -> None:
    """PyTorch runs the backward pass of a GPU's tensors in a thread of its own."""
    text = f"""
root
  Net host=4ms
    {kernel}
    [backward] #state
      MmBackward0 #operator host=8ms
  torch: backward #state host=10ms"""
    profile = replace(profile_from_text(text), meta={"attributes": {"Net": {"module": "Net"}}})
    grouped = group_by_module(profile, "host_time")
    assert round(grouped.total("backward") / 1e6) == backward_ms
    assert round(grouped.total("host_time") / 1e6) == backward_ms + 4


def test_a_profile_without_modules_says_how_to_record_them() -> None:
    with pytest.raises(UsageError, match="no module of PyTorch was recorded") as raised:
        group_by_module(profile_from_text("root\n  Net\n    kernel 5us"), "gpu_time")
    assert "--modules" in raised.value.hint


def test_a_metric_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(UsageError, match="not a metric of this profile that adds up") as raised:
        group_by_module(recorded(), "gpu_time_min")
    assert raised.value.hint == "Name one first that does, such as gpu_time"
