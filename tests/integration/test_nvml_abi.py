"""The own declarations of NVML agree with the vendor's Python package, whose wheel is never installed."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
HEADER = (NATIVE / "backends" / "telemetry" / "nvml_abi.h").read_text()
WHEELS = {"12.535": "nvidia-ml-py==12.535.161", "13.580": "nvidia-ml-py==13.580.82", "newest": "nvidia-ml-py"}
# Ours, by the vendor's name.
NUMBERS = {
    "NVML_ERROR_INVALID_ARGUMENT": "InvalidArgument",
    "NVML_ERROR_NOT_SUPPORTED": "NotSupported",
    "NVML_ERROR_NO_PERMISSION": "NoPermission",
    "NVML_ERROR_NOT_FOUND": "NotFound",
    "NVML_ERROR_GPU_IS_LOST": "GpuIsLost",
    "NVML_CLOCK_SM": "Sm",
    "NVML_CLOCK_MEM": "Memory",
    "NVML_TEMPERATURE_GPU": "Gpu",
    "NVML_TOTAL_POWER_SAMPLES": "TotalPower",
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": "NvlinkSentKib",
    "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": "NvlinkReceivedKib",
    "NVML_FI_DEV_POWER_INSTANT": "PowerNowMw",
    "NVML_FI_DEV_PCIE_COUNT_TX_BYTES": "PcieSentBytes",
    "NVML_FI_DEV_PCIE_COUNT_RX_BYTES": "PcieReceivedBytes",
    "NVML_VALUE_TYPE_DOUBLE": "Double",
    "NVML_VALUE_TYPE_UNSIGNED_INT": "UnsignedInt",
    "NVML_VALUE_TYPE_UNSIGNED_LONG": "UnsignedLong",
    "NVML_VALUE_TYPE_UNSIGNED_LONG_LONG": "UnsignedLongLong",
    "NVML_VALUE_TYPE_SIGNED_LONG_LONG": "SignedLongLong",
    "NVML_VALUE_TYPE_SIGNED_INT": "SignedInt",
    "NVML_VALUE_TYPE_UNSIGNED_SHORT": "UnsignedShort",
    "nvmlClocksThrottleReasonGpuIdle": "kIdle",
    "nvmlClocksThrottleReasonApplicationsClocksSetting": "kApplicationClocks",
    "nvmlClocksThrottleReasonSwPowerCap": "kPowerCap",
    "nvmlClocksThrottleReasonHwSlowdown": "kHardwareSlowdown",
    "nvmlClocksThrottleReasonSyncBoost": "kSyncBoost",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "kThermal",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "kHardwareThermal",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "kPowerBrake",
    "nvmlClocksThrottleReasonDisplayClockSetting": "kDisplayClocks",
}
# Later than the oldest of these releases.
_NEWER = {"NVML_FI_DEV_PCIE_COUNT_TX_BYTES", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES"}
_NEWER |= {"NVML_VALUE_TYPE_SIGNED_INT", "NVML_VALUE_TYPE_UNSIGNED_SHORT"}


@pytest.fixture(scope="module", params=WHEELS)
def vendor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    wheels = request.config.cache.mkdir("nvml_abi") / request.param
    if not list(wheels.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), WHEELS[request.param]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            pytest.skip(f"{WHEELS[request.param]} cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = wheels.glob("*.whl")
    module_file = tmp_path_factory.mktemp("nvml") / "pynvml_of_vendor.py"
    with zipfile.ZipFile(wheel) as archive:
        module_file.write_bytes(archive.read("pynvml.py"))
    spec = importlib.util.spec_from_file_location("pynvml_of_vendor", module_file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # it looks itself up
    spec.loader.exec_module(module)
    return module


def ours(name: str) -> int:
    (number,) = re.findall(rf"\b{name} = (0x[0-9A-F]+|\d+)", HEADER)
    return int(number, 0)


def test_every_number_is_that_of_the_vendor(vendor: ModuleType) -> None:
    theirs = {name: getattr(vendor, name, None) for name in NUMBERS}
    assert {name for name, value in theirs.items() if value is None} <= _NEWER
    differing = {name: value for name, value in theirs.items() if value is not None and value != ours(NUMBERS[name])}
    assert differing == {}


def test_every_number_of_ours_is_compared() -> None:
    body = HEADER.partition("enum class")[2].partition("using Init")[0]
    named = set(re.findall(r"\b(\w+) = (?:0x[0-9A-F]+|\d+)(?:[,;]| \})", body)) - {"Success", "kAllLinks"}
    assert named == set(NUMBERS.values())


def test_a_field_value_is_laid_out_as_the_vendors(vendor: ModuleType) -> None:
    field = vendor.c_nvmlFieldValue_t
    names = {
        "fieldId": 0,
        "scopeId": 4,
        "timestamp": 8,
        "latencyUsec": 16,
        "valueType": 24,
        "nvmlReturn": 28,
        "value": 32,
    }
    assert {name: getattr(field, name).offset for name in names} == names
    assert ctypes.sizeof(field) == 40


def test_a_sample_is_laid_out_as_the_vendors(vendor: ModuleType) -> None:
    sample = vendor.c_nvmlSample_t
    assert (sample.timeStamp.offset, sample.sampleValue.offset, ctypes.sizeof(sample)) == (0, 8, 16)


def test_functions_have_the_names_that_the_core_asks_for(vendor: ModuleType) -> None:
    source = (NATIVE / "backends" / "telemetry" / "nvml_library.cpp").read_text()
    asked = set(re.findall(r'"(nvml\w+)"', source))
    text = Path(str(vendor.__file__)).read_text()
    not_wrapped = {"nvmlInit_v2", "nvmlDeviceGetCurrentClocksEventReasons"}  # the second in the oldest release
    assert {name for name in asked if f'"{name}"' not in text} <= not_wrapped
    assert len(asked) == 14
