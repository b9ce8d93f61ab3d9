"""What sources beside CUPTI's records leave in META: as a recording of one GPU has it."""

from __future__ import annotations

from typing import Any

__all__ = ["SOURCE_FACTS"]


def _values(mean: float, samples: int = 50) -> dict[str, float]:
    return {"samples": samples, "mean": mean, "least": mean / 2, "most": 2 * mean}


_TELEMETRY = {
    "limit_ppm": 1000,
    "interval_ns": 100_000_000,
    "sampling": {"samples": 50, "missed_samples": 2, "cpu_ns": 4_000_000, "taken_ns": 5_000_000, "span_ns": 10**10},
    "lost_values": 3,
    "host": {"cpu_percent": _values(93), "resident_bytes": _values(2e9)},
    "devices": {
        "0": {
            "source": {"uuid": "GPU-0", "power_is": "instant", "sampled_by": 41, "missing": {"pcie": "too narrow"}},
            "power_w": _values(412),
            "sm_clock_mhz": _values(1755),
            "memory_used_bytes": _values(2e10),
            "energy_j": 2104.5,
            "energy_ns": 5_100_000_000,
            "clock_reasons": {"samples": 50, "power": 20, "idle": 5},
        }
    },
}
_COUNTERS = {
    "other_nvperf": "/opt/libnvperf_host.so",
    "lost_values": 1,
    "devices": {
        "0": {
            "chip": "GH100",
            "metrics": ["dram__bytes_read.sum"],
            "left_out": ["DRAM write"],
            "interval_ns": 800_000,
            "samples": 1000,
            "gaps": 2,
            "gap_ns": 800_000_000,
            "restarts": 1,
        }
    },
}
_EXACT = {
    "kernels": "matmul",
    "counted_launches": 4,
    "counted_kernels": 2,
    "incomplete_kernels": 1,
    "not_counted": {"captured": 2, "cooperative": 1},
    "devices": {"0": {"sets": [["dram__bytes_read.sum"]], "passes": [1], "left_out": ["x"]}},
}
_MEMORY = {
    "reason": "",
    "devices": {
        "0": {
            "peak_bytes": 1 << 30,
            "peak_ns": 10**9,
            "reserved_at_peak_bytes": 2 << 30,
            "most_reserved_bytes": 3 << 30,
            "allocations": 1000,
            "reservations": 10,
            "unknown_bytes": 4096,
            "curve": {
                "start_ns": 0,
                "bin_ns": 10**6,
                "least_bytes": [0, 1],
                "most_bytes": [1, 2],
                "reserved_bytes": [2, 2],
            },
        }
    },
}
_NCCL = {
    "interface": 5,
    "version": 22_809,
    "lost_calls": 1,
    "communicators": [
        {
            "group": "0x1234",
            "torch_group": "default_pg",
            "rank": 0,
            "n_ranks": 8,
            "calls": [
                {
                    "function": "AllReduce",
                    "dtype": "ncclBfloat16",
                    "count": 1 << 20,
                    "algorithm": "RING",
                    "protocol": "SIMPLE",
                    "channels": 16,
                    "calls": 100,
                    "timed": 90,
                    "gpu_ns": 10**9,
                    "least_ns": 10**5,
                    "most_ns": 10**7,
                    "last_sequence": 99,
                }
            ],
        }
    ],
}
_PLACE = [{"file": "kernels.py", "line": 8, "function": "matmul"}]
_CLOCKS = {
    "kernel": "matmul<BLOCK=64>",
    "level": "fine",
    "refused": [{"level": "finest", "why": "clocks made it 12 % longer"}],
    "pairs": 3,
    "plain_ns": 10_000.0,
    "timed_ns": 10_400.0,
    "registers": [64, 72],
    "blocks_at_once": [8, 8],
    "shared_bytes": [1024, 2048],
    "block_ns": [9000, 9500, 10_000],
    "blocks": 128,
    "warps": 512,
    "covered_cycles": 1000,
    "warp_cycles": 2000,
    "clock_ghz": 1.98,
    "segments": [
        {"does": "begin loads from global memory", "place": _PLACE, "cycles": [40, 160]},
        {"does": "wait for other warps", "place": _PLACE, "cycles": [100, 100, 400]},
    ],
}
SOURCE_FACTS: dict[str, Any] = {
    "telemetry": _TELEMETRY,
    "counters": _COUNTERS,
    "exact_counters": _EXACT,
    "gpu_memory": _MEMORY,
    "cuda_memory": _MEMORY,
    "jax_memory": {"0": {"peak_bytes": 1 << 30}},
    "nccl": _NCCL,
    "inside_kernels": [_CLOCKS],
}
