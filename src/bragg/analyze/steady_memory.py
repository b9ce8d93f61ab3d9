"""How memory of a GPU changes in the steady state: growth by step, and memory that is taken from CUDA again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bragg.analyze.wall.wall_time import Steady
from bragg.model import Profile
from bragg.model.meta.gpu_memory import DeviceMemory, gpu_memory_of

_PARTS = 4
_LEAST_STEPS = 2 * _PARTS  # a part with a whole step has the least of what a step allocates


@dataclass(frozen=True)
class SteadyMemory:
    """One GPU in the steady state.

    Attributes:
        device: Ordinal of the GPU.
        growth_bytes: What a step leaves allocated when it ends: 0 if memory does not grow in each quarter of the steady
            state; None: there are too few steps to tell.
        reserved_bytes: Memory that the allocator took from CUDA in the steady state.
    """

    device: int
    growth_bytes: float | None
    reserved_bytes: int


def steady_memory(profile: Profile, steady: Steady | None) -> list[SteadyMemory]:
    """By device; none without a steady state, or where memory was not followed."""
    told = gpu_memory_of(profile.meta)
    if steady is None or told is None:
        return []
    found = (_of_device(device, steady) for device in told.devices)
    return [each for each in found if each is not None]


def _of_device(device: DeviceMemory, steady: Steady) -> SteadyMemory | None:
    curve = device.curve
    begins_ns = curve.start_ns + curve.bin_ns * np.arange(len(curve.least_bytes))
    inside = (begins_ns >= steady.begins_ns) & (begins_ns + curve.bin_ns <= steady.ends_ns)
    least, reserved = curve.least_bytes[inside], curve.reserved_bytes[inside]
    if not len(least):
        return None
    taken = int(np.maximum(np.diff(reserved), 0).sum())
    return SteadyMemory(device.ordinal, _growth(least, steady.n_steps), taken)


def _growth(least: np.ndarray, n_steps: int) -> float | None:
    if n_steps < _LEAST_STEPS or len(least) < _PARTS:
        return None
    lows = [int(part.min()) for part in np.array_split(least, _PARTS)]
    grows = all(one < other for one, other in pairwise(lows))
    steps_between = n_steps * (_PARTS - 1) / _PARTS
    return (lows[-1] - lows[0]) / steps_between if grows else 0.0
