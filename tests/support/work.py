"""Profiles whose kernels have flops and bytes."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np

from bragg.model import Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text

H200 = {
    "name": "NVIDIA H200",
    "arch": "90",
    "num_sms": 132,
    "clock_khz": 1_980_000,
    "memory_clock_khz": 3_201_000,
    "bus_width_bits": 6016,
}
RTX_4090 = {"arch": "89", "num_sms": 128, "clock_khz": 2_625_000, "memory_clock_khz": 10_501_000, "bus_width_bits": 384}
H100 = {"arch": "90", "num_sms": 132, "clock_khz": 1_980_000, "memory_clock_khz": 2_619_000, "bus_width_bits": 6144}
B200 = {"arch": "100", "num_sms": 148, "clock_khz": 1_700_000, "memory_clock_khz": 3_996_000, "bus_width_bits": 8192}


def working_profile(text: str, devices: list[dict[str, Any]], **values: dict[str, float]) -> Profile:
    """The profile of a text, on devices, with inclusive metrics given as node label -> own value."""
    profile = profile_from_text(textwrap.dedent(text))
    labels = [profile.tree.label(node) for node in range(len(profile.tree))]
    added = {
        name: Metric(name, "", MetricKind.INCLUSIVE, np.array([own.get(label, 0.0) for label in labels]))
        for name, own in values.items()
    }
    return replace(profile, meta={"devices": devices}, metrics={**profile.metrics, **added})


def node_named(profile: Profile, label: str) -> int:
    """The only node with a label."""
    (node,) = (node for node in range(len(profile.tree)) if profile.tree.label(node) == label)
    return node
