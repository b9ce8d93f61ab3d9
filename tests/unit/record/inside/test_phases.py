"""Phases of one session as one recording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import Metric, MetricKind, Profile
from bragg.model.meta.gpu_memory import AT_PEAK
from bragg.record.inside.phases import unite
from tests.support.profiles import profile_from_text


def phase(held_bytes: int) -> Profile:
    """With arrays of JAX that one line holds near the peak."""
    profile = profile_from_text("root\n  weights 1us")
    held = Metric(AT_PEAK, "B", MetricKind.INCLUSIVE, np.array([0, held_bytes], np.int64))
    meta = {"jax_arrays": {"held_bytes": held_bytes, "in_use_bytes": held_bytes}}
    return replace(profile, metrics={**profile.metrics, AT_PEAK: held}, meta=meta)


def test_arrays_of_jax_are_those_of_the_phase_that_held_most() -> None:
    together = unite([phase(100), phase(300)])
    assert together is not None
    assert together.total(AT_PEAK) == 300
    assert together.meta["jax_arrays"]["held_bytes"] == 300
