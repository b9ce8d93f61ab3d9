"""What hardware counters say of kernels, as metrics of their call paths: estimates, each with its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.formats.limits import Limits
from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.kernel_counters import Rates, sampled_rates
from bragg.model.table import BoolArray, FloatArray

__all__ = ["COUNTED_TIME", "with_counted"]

COUNTED_TIME = "counted_time"
_OF_COUNTER = {
    "DRAM read (B/s)": "dram_read_bytes",
    "DRAM write (B/s)": "dram_write_bytes",
    "tensor pipe active (%)": "tensor_active_time",
    "SM active (%)": "sm_active_time",
    "warps active (%)": "occupancy_time",
    "instructions (1/s)": "gpu_instructions",
    "L2 sectors (1/s)": "l2_sectors",
    "NVLink receive (B/s)": "nvlink_receive_bytes",
    "NVLink send (B/s)": "nvlink_send_bytes",
    "PCIe read (B/s)": "pcie_read_bytes",
    "PCIe write (B/s)": "pcie_write_bytes",
}
_SUMS = {"dram_bytes": ("dram_read_bytes", "dram_write_bytes")}


def with_counted(profile: Profile, limits: Limits) -> Profile:
    """The profile with a metric for each counter that was sampled, where its kernels can be told apart.

    A counter's value is its rate while the kernel ran, times the kernel's GPU time; a share of time becomes the time.
    The rate is that of the kernel at its call path, or that of the kernel at all of them if the samples tell no more.
    `<metric>_error` is half of the interval that holds the truth in 95 % of cases; sums of errors are bounds.
    `counted_time` is the GPU time of the kernels that have values: they have one of every counter, or of none.

    Raises:
        TooLargeError: There are too many metrics for the file's size.
    """
    if "gpu_time" not in profile.metrics:
        return profile
    n_nodes = len(profile.tree)
    time_ns = np.where(profile.tree.kind == FrameKind.KERNEL, profile.own("gpu_time"), 0).astype(np.float64)
    device = profile.tree.frames.device[profile.tree.frame]
    values: dict[str, FloatArray] = {}
    is_counted = np.zeros(n_nodes, np.bool_)
    by_kernel = sampled_rates(profile, profile.tree.frame)
    for at_path, of_kernel in zip(sampled_rates(profile, np.arange(n_nodes)), by_kernel, strict=True):
        here = (time_ns > 0) & (device == at_path.device)
        found = _of_device(profile, at_path, of_kernel)
        for name, rate, error, is_told in found:
            here &= is_told
            for metric, per_ns in ((name, rate), (f"{name}_error", error)):
                values[metric] = values.get(metric, np.zeros(n_nodes))
                np.multiply(per_ns, time_ns, out=values[metric], where=device == at_path.device)
        is_counted |= here & bool(found)
    if not is_counted.any():
        return profile
    for total, parts in _SUMS.items():
        for suffix in ("", "_error") if all(part in values for part in parts) else ():
            values[total + suffix] = np.sum([values[part + suffix] for part in parts], axis=0)
    values[COUNTED_TIME] = time_ns
    limits.check_metrics(len(values), n_nodes)
    metrics = {
        name: Metric(name, _unit(name), MetricKind.INCLUSIVE, np.where(is_counted, own, 0))
        for name, own in values.items()
    }
    return replace(profile, metrics={**profile.metrics, **metrics})


def _of_device(
    profile: Profile, at_path: Rates, of_kernel: Rates
) -> list[tuple[str, FloatArray, FloatArray, BoolArray]]:
    """Metric, rate and error per ns, and whether they are told, [n_nodes] each."""
    found = []
    for row, track in enumerate(at_path.tracks):
        label = profile.tracks.label(track)
        name = _OF_COUNTER.get(label)
        if name is None:
            continue
        frame = profile.tree.frame
        is_told = at_path.is_told[row] | of_kernel.is_told[row][frame]
        rate, error = (
            np.where(at_path.is_told[row], exact[row], usual[row][frame])
            for exact, usual in ((at_path.rate, of_kernel.rate), (at_path.error, of_kernel.error))
        )
        scale = 1e-2 if label.endswith("(%)") else 1e-9
        found.append((name, np.maximum(rate, 0) * scale, error * scale, is_told))
    return found


def _unit(name: str) -> str:
    base = name.removesuffix("_error")
    return "B" if base.endswith("_bytes") else "ns" if base.endswith("_time") else "1"
