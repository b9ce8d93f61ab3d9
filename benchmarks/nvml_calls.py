"""What each call of NVML that telemetry makes takes, and what it says: `python benchmarks/nvml_calls.py [DEVICE]`.

Median and slowest of calls that are 20 ms apart, as a sampler makes them, and the CPU time of the thread that makes
them; a table on stdout. The last rows are calls that may tell the same for less.
"""

from __future__ import annotations

import ctypes
import itertools
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

_CALLS, _PAUSE_S = 12, 0.02
_ALL_LINKS = 0xFFFFFFFF
_SAMPLES = {"power": 0, "GPU utilization": 1, "memory utilization": 2, "SM clock": 5, "memory clock": 6}
_MOST_SAMPLES = 1024
_CLOCKS_TEXT_BYTES = 2048
_HELD_NS = (74, 75, 76, 251, 252, 253)
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


class Sample(ctypes.Structure):
    """A value that the driver kept."""

    _fields_ = (("time_us", ctypes.c_uint64), ("value", ctypes.c_uint64))


class ClocksText(ctypes.Structure):
    """All clocks as a text."""

    _fields_ = (("version", ctypes.c_uint32), ("text", ctypes.c_char * _CLOCKS_TEXT_BYTES))


def field_calls(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Callable[[], str]]:
    """A call for each field, and one for all together, as telemetry makes it."""

    def of(*fields: tuple[int, int]) -> Callable[[], str]:
        def call() -> str:
            values = (FieldValue * len(fields))(*(FieldValue(field=field, scope=scope) for field, scope in fields))
            result = nvml.nvmlDeviceGetFieldValues(device, len(fields), values)
            told = "; ".join(f"result {each.result}, type {each.type}: {each.value}" for each in values)
            return told if not result and len(fields) == 1 else f"result {result}"

        return call

    return {
        **{f"held ns ({field})": of((field, 0)) for field in _HELD_NS},
        "these and power in one call": of((186, 0), *((field, 0) for field in _HELD_NS)),
        **{name: of(field) for name, field in _FIELDS.items()},
        "these fields in one call": of(*_FIELDS.values()),
    }


def kept_calls(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Callable[[], str]]:
    """Values that the driver samples by itself: all that came since the last call; and all clocks in one call."""

    def of(kind: int) -> Callable[[], str]:
        samples, last_us = (Sample * _MOST_SAMPLES)(), ctypes.c_uint64(0)

        def call() -> str:
            count, value_type = ctypes.c_uint32(_MOST_SAMPLES), ctypes.c_uint32()
            result = nvml.nvmlDeviceGetSamples(
                device, kind, last_us, ctypes.byref(value_type), ctypes.byref(count), samples
            )
            if result or not count.value:
                return f"result {result}, {count.value} samples"
            took = sorted((each.time_us, each.value & 0xFFFFFFFF) for each in samples[: count.value])
            last_us.value = took[-1][0]
            steps = [round((later[0] - sooner[0]) / 1e3, 1) for sooner, later in itertools.pairwise(took)]
            ago_ms = time.time() * 1e3 - took[-1][0] / 1e3
            most = max(value for _, value in took)
            return (
                f"result 0, {count.value} samples over {sum(steps):.1f} ms, {steps[-8:]} apart, the last "
                f"{ago_ms:.1f} ms ago: {took[-1][1]}; at most {most}"
            )

        return call

    def clocks() -> str:
        told = ClocksText(version=ctypes.sizeof(ClocksText) | 1 << 24)
        return f"result {nvml.nvmlDeviceGetCurrentClockFreqs(device, ctypes.byref(told))}: {told.text.decode()}"

    return {**{f"samples of {name} ({kind})": of(kind) for name, kind in _SAMPLES.items()}, "all clocks": clocks}


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


def opened(index: int) -> dict[str, Callable[[], str]]:
    """All calls, for one GPU."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    if result := nvml.nvmlInit_v2():
        sys.exit(f"nvmlInit_v2: {result}")
    device = ctypes.c_void_p()
    if result := nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
        sys.exit(f"nvmlDeviceGetHandleByIndex_v2({index}): {result}")
    return {**plain_calls(nvml, device), **kept_calls(nvml, device), **field_calls(nvml, device)}


def row(name: str, call: Callable[[], str]) -> str:
    """Of one call what the table says."""
    try:
        first = call()
    except AttributeError as missing:
        return f"{name:<34} {missing}"
    told, took_us, cpu_us = "", [], []
    for _ in range(_CALLS):
        begin, cpu_begin = time.perf_counter_ns(), time.thread_time_ns()
        told = call()
        cpu_us.append((time.thread_time_ns() - cpu_begin) / 1e3)
        took_us.append((time.perf_counter_ns() - begin) / 1e3)
        time.sleep(_PAUSE_S)
    median_us, cpu_median_us = statistics.median(took_us), statistics.median(cpu_us)
    return f"{name:<34} {median_us:>10,.1f} {max(took_us):>11,.1f} {cpu_median_us:>8,.1f}  {told}; first: {first}"


def main(index: int) -> None:
    """Print the table. A driver may crash in a call that it does not support, so each has a process of its own."""
    print(f"{'call':<34} {'median us':>10} {'slowest us':>11} {'CPU us':>8}  says", flush=True)
    for name in opened(index):
        done = subprocess.run([sys.executable, __file__, str(index), name], capture_output=True, text=True, check=False)
        ended = f"{name:<34} ended by {signal.Signals(-done.returncode).name}" if done.returncode < 0 else done.stderr
        print((done.stdout or ended).strip(), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["0"]
    if len(arguments) > 1:
        print(row(arguments[1], opened(int(arguments[0]))[arguments[1]]))
    else:
        main(int(arguments[0]))
