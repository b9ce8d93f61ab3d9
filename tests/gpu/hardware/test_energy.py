"""Energy of kernels against the GPU's own counter, on a real GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bragg.model.kernels.counters import power_rates
from bragg.model.meta.telemetry import telemetry_of
from tests.gpu.conftest import record

pytestmark = pytest.mark.cuda


def test_energy_of_kernels_and_idle_time_is_that_of_the_counter(tmp_path: Path) -> None:
    profile = record(tmp_path, "phases.py", "--telemetry", "20", "--data=trace").profile
    told = telemetry_of(profile.meta)
    assert told is not None
    (gpu,) = told.gpus
    (rates,) = power_rates(profile, profile.tree.frame)
    energy, counted_ns = profile.total("gpu_energy"), profile.total("energy_counted_time")
    names = profile.tree.frames.name
    for frame in np.flatnonzero(rates.is_told[0]).tolist():
        print(f"{names[frame][:60]}: {rates.rate[0, frame]:.0f} +- {rates.error[0, frame]:.0f} W")
    power, span_s = gpu.mean("power_w"), gpu.energy_ns / 1e9
    assert power is not None
    assert gpu.energy_j is not None
    idle_s = span_s - counted_ns / 1e9
    idle_w = float(rates.idle_rate[0])
    both = energy + idle_w * idle_s
    print(f"kernels {energy:.0f} J, idle {idle_w:.0f} W for {idle_s:.1f} s: {both:.0f} of {gpu.energy_j:.0f} J")
    assert counted_ns > 0.9 * profile.total("gpu_time")
    assert both == pytest.approx(gpu.energy_j, rel=0.05)
