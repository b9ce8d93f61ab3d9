"""What each call of NVML that telemetry makes takes, and what it says: `python benchmarks/nvml_calls.py [DEVICE]`.

Median and slowest of calls that are 20 ms apart, as a sampler makes them, on an idle GPU; a table on stdout.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable

_CALLS, _PAUSE_S = 50, 0.02
_ALL_LINKS = 0xFFFFFFFF
_FIELDS = {
    "power now (186)": (186, 0),
    "PCIe sent (197)": (197, 0),
    "PCIe received (198)": (198, 0),
    "NVLink sent, all links (138)": (138, _ALL_LINKS),
    "NVLink received, all links (139)": (139, _ALL_LINKS),
}


class FieldValue(ctypes.Structure):
    """As in native/backends/telemetry/nvml_abi.h."""

    _fields_ = (
        ("field", ctypes.c_uint32),
        ("scope", ctypes.c_uint32),
        ("time_us", ctypes.c_int64),
        ("latency_us", ctypes.c_int64),
        ("type", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
    )


def field_calls(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Callable[[], str]]:
    """A call for each field, and one for all together, as telemetry makes it."""

    def of(*fields: tuple[int, int]) -> Callable[[], str]:
        def call() -> str:
            values = (FieldValue * len(fields))(*(FieldValue(field=field, scope=scope) for field, scope in fields))
            result = nvml.nvmlDeviceGetFieldValues(device, len(fields), values)
            told = "; ".join(f"result {each.result}, type {each.type}: {each.value}" for each in values)
            return told if not result and len(fields) == 1 else f"result {result}"

        return call

    return {**{name: of(field) for name, field in _FIELDS.items()}, "these fields in one call": of(*_FIELDS.values())}


def plain_calls(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Callable[[], str]]:
    """The calls that fill one value, or a few."""

    def of(function: str, *before: int, count: int = 1, wide: bool = False) -> Callable[[], str]:
        values = ((ctypes.c_uint64 if wide else ctypes.c_uint32) * count)()

        def call() -> str:
            result = getattr(nvml, function)(device, *map(ctypes.c_uint32, before), values)
            return f"result {result}: {', '.join(map(str, values))}"

        return call

    return {
        "average power": of("nvmlDeviceGetPowerUsage"),
        "SM clock": of("nvmlDeviceGetClockInfo", 1),
        "memory clock": of("nvmlDeviceGetClockInfo", 2),
        "utilization": of("nvmlDeviceGetUtilizationRates", count=2),
        "memory": of("nvmlDeviceGetMemoryInfo", count=3, wide=True),
        "temperature": of("nvmlDeviceGetTemperature", 0),
        "reasons of clocks": of("nvmlDeviceGetCurrentClocksThrottleReasons", wide=True),
        "energy": of("nvmlDeviceGetTotalEnergyConsumption", wide=True),
    }


def main(index: int) -> None:
    """Print the table."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    if result := nvml.nvmlInit_v2():
        sys.exit(f"nvmlInit_v2: {result}")
    device = ctypes.c_void_p()
    if result := nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
        sys.exit(f"nvmlDeviceGetHandleByIndex_v2({index}): {result}")
    print(f"{'call':<34} {'median us':>10} {'slowest us':>11}  says")
    for name, call in {**field_calls(nvml, device), **plain_calls(nvml, device)}.items():
        took_us = []
        for _ in range(_CALLS):
            begin = time.perf_counter_ns()
            told = call()
            took_us.append((time.perf_counter_ns() - begin) / 1e3)
            time.sleep(_PAUSE_S)
        print(f"{name:<34} {statistics.median(took_us):>10,.1f} {max(took_us):>11,.1f}  {told}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
