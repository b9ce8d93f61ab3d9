"""What hardware counters say of kernels, as metrics of their call paths: estimates, each with its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.formats.captured.metered import metered
from bragg.formats.limits import Limits
from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.kernels.counters import Rates, power_rates, sampled_rates
from bragg.model.meta.telemetry import METERED
from bragg.model.table import BoolArray, FloatArray, Int32Array

# Its metric, and what is reported together with others or not at all.
_OF_COUNTER = {
    "DRAM read (B/s)": ("dram_read_bytes", "dram"),
    "DRAM write (B/s)": ("dram_write_bytes", "dram"),
    "tensor pipe active (%)": ("tensor_active_time", "tensor_active"),
    "SM active (%)": ("sm_active_time", "sm_active"),
    "warps active (%)": ("occupancy_time", "occupancy"),
    "instructions (1/s)": ("gpu_instructions", "gpu_instructions"),
    "L2 busy (%)": ("l2_busy_time", "l2_busy"),
    "L1 busy (%)": ("l1_busy_time", "l1_busy"),
    "pipe busy (%)": ("pipe_busy_time", "pipe_busy"),
    "L2 sectors (1/s)": ("l2_sectors", "l2"),
    "NVLink receive (B/s)": ("nvlink_receive_bytes", "nvlink"),
    "NVLink send (B/s)": ("nvlink_send_bytes", "nvlink"),
    "PCIe read (B/s)": ("pcie_read_bytes", "pcie"),
    "PCIe write (B/s)": ("pcie_write_bytes", "pcie"),
}
_SUMS = {"dram_bytes": ("dram_read_bytes", "dram_write_bytes")}


def with_counted(profile: Profile, limits: Limits) -> Profile:
    """The profile with a metric for each counter that was sampled, where its kernels can be told apart.

    A counter's value is its rate while the kernel ran, times the kernel's GPU time; a share of time becomes the time.
    The rate is that of the kernel at its call path, or that of the kernel at all of them if the samples tell no more.
    `<metric>_error` is half of the interval that holds the truth in 95 % of cases; sums of errors are bounds.
    `dram_counted_time` and the like are the GPU time of the kernels that have values. Power of telemetry becomes energy
    of kernels the same way. Its means over whatever ran on a GPU are those of `metered`.

    Raises:
        TooLargeError: There are too many metrics for the file's size.
    """
    if "gpu_time" not in profile.metrics:
        return profile
    n_nodes = len(profile.tree)
    values = metered(profile)
    time_ns = np.where(profile.tree.kind == FrameKind.KERNEL, profile.own("gpu_time"), 0).astype(np.float64)
    device = profile.tree.frames.device[profile.tree.frame]
    _add_energy(values, profile, time_ns, device)
    by_kernel = sampled_rates(profile, profile.tree.frame)
    for at_path, of_kernel in zip(sampled_rates(profile, np.arange(n_nodes)), by_kernel, strict=True):
        here = (time_ns > 0) & (device == at_path.device)
        found = _of_device(profile, at_path, of_kernel)
        told = {group: here.copy() for _, group, *_ in found}
        for _, group, _, _, is_told in found:
            told[group] &= is_told
        for name, group, rate, error, _ in found:
            for metric, per_ns in ((name, rate), (f"{name}_error", error), (f"{group}_counted_time", 1.0)):
                own = values.setdefault(metric, np.zeros(n_nodes))
                np.multiply(per_ns, time_ns, out=own, where=told[group])
    for total, parts in _SUMS.items():
        for suffix in ("", "_error") if all(part in values for part in parts) else ():
            values[total + suffix] = np.sum([values[part + suffix] for part in parts], axis=0)
    limits.check_metrics(len(values), n_nodes)
    metrics = {name: Metric(name, _unit(name), MetricKind.INCLUSIVE, own) for name, own in values.items()}
    return replace(profile, metrics={**profile.metrics, **metrics})


def _add_energy(values: dict[str, FloatArray], profile: Profile, time_ns: FloatArray, device: Int32Array) -> None:
    """Energy of kernels whose power telemetry tells apart: `gpu_energy`, its error, and their GPU time."""
    frame = profile.tree.frame
    for rates in power_rates(profile, frame):
        told = (time_ns > 0) & (device == rates.device) & rates.is_told[0][frame]
        for metric, per_ns in (
            ("gpu_energy", np.maximum(rates.rate[0], 0)[frame] * 1e-9),
            ("gpu_energy_error", rates.error[0][frame] * 1e-9),
            ("energy_counted_time", 1.0),
        ):
            own = values.setdefault(metric, np.zeros(len(frame)))
            np.multiply(per_ns, time_ns, out=own, where=told)


def _of_device(
    profile: Profile, at_path: Rates, of_kernel: Rates
) -> list[tuple[str, str, FloatArray, FloatArray, BoolArray]]:
    """Metric, group, rate and error per ns, and whether they are reported, [n_nodes] each."""
    found = []
    for row, track in enumerate(at_path.tracks):
        label = profile.tracks.label(track)
        if label not in _OF_COUNTER:
            continue
        frame = profile.tree.frame
        is_told = at_path.is_told[row] | of_kernel.is_told[row][frame]
        rate, error = (
            np.where(at_path.is_told[row], exact[row], usual[row][frame])
            for exact, usual in ((at_path.rate, of_kernel.rate), (at_path.error, of_kernel.error))
        )
        scale = 1e-2 if label.endswith("(%)") else 1e-9
        found.append((*_OF_COUNTER[label], np.maximum(rate, 0) * scale, error * scale, is_told))
    return found


def _unit(name: str) -> str:
    if name in METERED:
        return METERED[name]
    base = name.removesuffix("_error")
    if base == "gpu_energy":
        return "J"
    return "B" if base.endswith("_bytes") else "ns" if base.endswith("_time") else "1"
