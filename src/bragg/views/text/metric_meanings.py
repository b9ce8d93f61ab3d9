"""What the metrics that bragg records and computes mean: the reference is made of these rows."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.model.metric import MetricKind

_INCLUSIVE, _EXCLUSIVE, _PROPERTY = MetricKind.INCLUSIVE, MetricKind.EXCLUSIVE, MetricKind.PROPERTY


@dataclass(frozen=True)
class Meaning:
    """A row of the reference.

    Attributes:
        unit: As `Metric.unit`; empty where the program chooses it.
        kind: As `Metric.kind`.
        text: One sentence of Markdown.
        shown_by: The option of `bragg view` that the metric needs; empty for metrics that are always there.
    """

    unit: str
    kind: MetricKind
    text: str
    shown_by: str = ""


MEANINGS = {
    "gpu_time": Meaning("ns", _INCLUSIVE, "Time that kernels, copies and memory sets ran, by the device's timestamps."),
    "gpu_count": Meaning("1", _INCLUSIVE, "Number of kernels, copies and memory sets."),
    "gpu_bytes": Meaning("B", _INCLUSIVE, "Bytes that were copied or set."),
    "gpu_time_min": Meaning("ns", _PROPERTY, "Shortest run of a kernel, copy or set."),
    "gpu_time_max": Meaning("ns", _PROPERTY, "Longest run of a kernel, copy or set."),
    "gpu_time_p50": Meaning("ns", _PROPERTY, "Median over the launches of a kernel, within 3.2 %.", "--flat"),
    "gpu_time_p95": Meaning("ns", _PROPERTY, "95th percentile over the launches, within 3.2 %.", "--flat"),
    "gpu_time_p99": Meaning("ns", _PROPERTY, "99th percentile over the launches, within 3.2 %.", "--flat"),
    "gpu_time_first": Meaning("ns", _PROPERTY, "Start of the first launch, since the recording began.", "--flat"),
    "host_time": Meaning("ns", _INCLUSIVE, "Time that host threads spent there."),
    "host_count": Meaning("1", _EXCLUSIVE, "Times that a scope or operator was entered, or a GPU API call was made."),
    "sync_time": Meaning("ns", _INCLUSIVE, "Part of `host_time` in calls that wait for the GPU."),
    "wait_time": Meaning("ns", _INCLUSIVE, "Part of `host_time` in which the main thread did not run."),
    "thread_time": Meaning(
        "ns", _INCLUSIVE, "Part of `host_time` that other threads than the main one ran in functions of Python."
    ),
    "samples": Meaning("1", _INCLUSIVE, "Samples of the host's call path."),
    "gpu_idle_time": Meaning("ns", _INCLUSIVE, "Time in which a GPU had no work, by what the host did.", "--idle"),
    "gpu_idle_count": Meaning("1", _INCLUSIVE, "Number of pauses of a GPU.", "--idle"),
    "gpu_idle_longest": Meaning("ns", _PROPERTY, "Longest part of a pause at this node.", "--idle"),
    "num_samples": Meaning("1", _INCLUSIVE, "Instruction samples of a kernel (`bragg run --sample`)."),
    "num_stalled_samples": Meaning("1", _INCLUSIVE, "Instruction samples of warps that could not issue."),
    "num_samples_apportioned": Meaning(
        "1", _INCLUSIVE, "Instruction samples that several call paths share by their GPU time."
    ),
    "stalled_<reason>": Meaning("1", _INCLUSIVE, "Instruction samples by stall reason, with the vendor's name."),
    "dram_bytes": Meaning(
        "B",
        _INCLUSIVE,
        "Bytes of DRAM, read and written: an estimate from sampled counters (`bragg run --counters`), or exact for the "
        "launches in `exact_count`.",
    ),
    "exact_count": Meaning(
        "1", _INCLUSIVE, "Launches that were counted exactly (`--counters-exact`); other counters are of them alone."
    ),
    "<counter>_counted_launches": Meaning(
        "1",
        _INCLUSIVE,
        "Of `exact_count` those with this counter, where counters need several passes and take turns over launches.",
    ),
    "smsp__sass_<metric>": Meaning(
        "1",
        _INCLUSIVE,
        "Counts by instruction, with the vendor's name, of the launches in `instruction_counted_launches`, which have "
        "no GPU time (`--counters-exact`).",
    ),
    "dram_read_bytes": Meaning("B", _INCLUSIVE, "Bytes read from DRAM, estimated from sampled counters."),
    "dram_write_bytes": Meaning("B", _INCLUSIVE, "Bytes written to DRAM, estimated."),
    "tensor_active_time": Meaning("ns", _INCLUSIVE, "Time in which tensor cores worked, estimated."),
    "sm_active_time": Meaning(
        "ns", _INCLUSIVE, "Time in which a multiprocessor had a warp, estimated; the mean of all."
    ),
    "occupancy_time": Meaning("ns", _INCLUSIVE, "GPU time, times the share of warps that were resident, estimated."),
    "gpu_instructions": Meaning("1", _INCLUSIVE, "Instructions that warps executed, estimated."),
    "l2_busy_time": Meaning("ns", _INCLUSIVE, "Time that L2 needs at its peak, estimated (`--counters l2`)."),
    "l1_busy_time": Meaning("ns", _INCLUSIVE, "Time that L1 needs at its peak, estimated (`--counters units`)."),
    "pipe_busy_time": Meaning(
        "ns", _INCLUSIVE, "Time that the busiest pipeline needs at its peak, estimated (`--counters units`)."
    ),
    "l2_sectors": Meaning("1", _INCLUSIVE, "Sectors that L2 was asked for, estimated (`--counters l2`)."),
    "nvlink_receive_bytes": Meaning(
        "B", _INCLUSIVE, "Bytes over NVLink, estimated; also `nvlink_send_bytes` (`--counters nvlink`)."
    ),
    "pcie_read_bytes": Meaning(
        "B", _INCLUSIVE, "Bytes over PCIe, estimated; also `pcie_write_bytes` (`--counters pcie`)."
    ),
    "<counter>_counted_time": Meaning("ns", _INCLUSIVE, "GPU time of the kernels that a counter tells apart."),
    "<counter>_error": Meaning(
        "",
        _INCLUSIVE,
        "Error of such an estimate: the truth is that near in 95 % of cases; a bound for several kernels.",
    ),
    "gpu_energy": Meaning(
        "J", _INCLUSIVE, "Energy of the GPU while kernels ran, estimated from samples of its power (`--telemetry`)."
    ),
    "energy": Meaning(
        "J",
        _INCLUSIVE,
        "Mean power of the GPU by the time that this ran on it (`--telemetry --data trace`): what runs within one "
        "sample has the same power. `gpu_energy` tells kernels apart.",
    ),
    "sm_cycles": Meaning("cycles", _INCLUSIVE, "SM clock by `clocked_time`; `sm_clock` is its mean (`--telemetry`)."),
    "throttled_time": Meaning(
        "ns", _INCLUSIVE, "GPU time in samples in which power or temperature held the clocks (`--telemetry`)."
    ),
    "metered_time": Meaning("ns", _INCLUSIVE, "GPU time in samples of power; `power` is `energy` by it."),
    "clocked_time": Meaning("ns", _INCLUSIVE, "GPU time in samples of the SM clock."),
    "gpu_memory_peak": Meaning(
        "B",
        _INCLUSIVE,
        "GPU memory that a call path held when PyTorch's allocator had handed out most (`bragg run --memory`).",
    ),
    "gpu_memory_end": Meaning("B", _INCLUSIVE, "The same at the end of the recording (`--memory`)."),
    "gpu_memory_reserved": Meaning(
        "B", _INCLUSIVE, "Memory that the allocator took from CUDA for a call path (`--memory`)."
    ),
    "gpu_memory_reservations": Meaning("1", _INCLUSIVE, "How often it did, which waits for the GPU (`--memory`)."),
    "cuda_memory_peak": Meaning(
        "B",
        _INCLUSIVE,
        "GPU memory that a call path had taken from CUDA itself, by cuMemAlloc and the like, when that was most. "
        "Segments of PyTorch's allocator are not in it (`--memory`).",
    ),
    "cuda_memory_end": Meaning("B", _INCLUSIVE, "The same at the end of the recording (`--memory`)."),
    "cuda_memory_taken": Meaning("B", _INCLUSIVE, "All that a call path took in such calls (`--memory`)."),
    "cuda_memory_calls": Meaning("1", _INCLUSIVE, "How often it did (`--memory`)."),
    "warp_cycles": Meaning(
        "cycles", _INCLUSIVE, "Cycles of a kernel's warps in one launch, by what they did (`bragg run --instrument`)."
    ),
    "warp_wait_cycles": Meaning("cycles", _INCLUSIVE, "Part of `warp_cycles` in which they waited."),
    "scope_value_count": Meaning(
        "1", _EXCLUSIVE, "How often the warps of one launch gave a `kernel_scope` a value (`bragg run --instrument`)."
    ),
    "scope_value_sum": Meaning("", _EXCLUSIVE, "Sum of these values."),
    "scope_value_min": Meaning("", _PROPERTY, "Least of these values."),
    "scope_value_max": Meaning("", _PROPERTY, "Greatest of these values."),
    "kernel_event_count": Meaning(
        "1", _INCLUSIVE, "Events that the first blocks of a kernel began and ended (`bragg.kernel_event_begin`)."
    ),
    "kernel_event_cycles": Meaning("cycles", _INCLUSIVE, "Time from their begins to their ends, added up."),
    "kernel_event_max": Meaning("cycles", _PROPERTY, "The longest of them."),
    "marker_time": Meaning("ns", _EXCLUSIVE, "Time that NVTX ranges made by start and end were open."),
    "marker_count": Meaning("1", _EXCLUSIVE, "Number of NVTX ranges made by start and end, and of marks."),
    "nvtx_payload": Meaning("", _PROPERTY, "Last payload of an NVTX range or mark."),
    "nvtx_payload_sum": Meaning("", _EXCLUSIVE, "Sum of the payloads of an NVTX range or mark."),
    "region_time": Meaning("ns", _INCLUSIVE, "Time of a region in complete training steps.", "--group-by region"),
    "region_calls": Meaning("1", _EXCLUSIVE, "Number of times that a region was entered.", "--group-by region"),
    "region_time_mean": Meaning("ns", _PROPERTY, "Mean time of one entry of a region.", "--group-by region"),
    "region_time_p50": Meaning("ns", _PROPERTY, "Median time of a region, within 3.2 %.", "--group-by region"),
    "region_time_p95": Meaning("ns", _PROPERTY, "95th percentile of a region, within 3.2 %.", "--group-by region"),
}
