from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import Metric, MetricKind, Profile
from bragg.views.terminal.waiting import waiting_line
from tests.support.profiles import profile_from_text


def waits(text: str, **own_ms: int) -> Profile:
    """A profile in which these calls wait, for as long as they last."""
    profile = profile_from_text(text)
    own = np.array([own_ms.get(profile.tree.label(node), 0) * 1_000_000 for node in range(len(profile.tree))])
    metric = Metric("sync_time", "ns", MetricKind.INCLUSIVE, own)
    return replace(profile, metrics={**profile.metrics, "sync_time": metric})


def test_the_code_of_the_program_that_waits_is_named_whatever_it_calls() -> None:
    profile = waits(
        """root
  train.py:40@main host=59ms
    train.py:31@train_step
      /x/lib/python3.11/site-packages/torch/cuda.py:9@synchronize
        cudaDeviceSynchronize #gpu_api host=30ms
      cudaFree #gpu_api host=10ms
    cudaStreamSynchronize #gpu_api host=1ms""",
        cudaDeviceSynchronize=30,
        cudaFree=10,
        cudaStreamSynchronize=1,
    )
    assert waiting_line(profile) == (
        "the host waited 41.0 ms for the GPU, 41.0 % of its time, 97.6 % of that in train_step train.py:31"
    )


def test_waits_outside_of_any_code_are_said_to_be() -> None:
    profile = waits("root\n  cudaDeviceSynchronize #gpu_api host=5ms", cudaDeviceSynchronize=5)
    assert waiting_line(profile).endswith("100.0 % of its time, 100.0 % of that in code outside of any scope")


def test_little_waiting_is_not_worth_a_line() -> None:
    assert waiting_line(waits("root\n  a host=97ms\n    cudaFree #gpu_api host=3ms", cudaFree=3)) == ""
    assert waiting_line(profile_from_text("root\n  a host=1ms")) == ""
