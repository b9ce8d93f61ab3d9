"""The GPU of this machine as a target, asked without CUDA: a process that has started CUDA cannot fork any more."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bragg.debug.host.driver import has_gpu
from bragg.debug.targets import DEFAULT_TARGET, Target, target_named
from bragg.errors import UsageError

_NVML = "libnvidia-ml.so.1"
_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


@cache
def machine_target() -> Target:
    """The first GPU of the machine; `sm_90` where there is none, `any` where it is of a kind that is not known."""
    name = (nvidia_name(lambda: ctypes.CDLL(_NVML)) or amd_name(_NODES)) if has_gpu() else DEFAULT_TARGET
    try:
        return target_named(name or "any")
    except UsageError:
        return target_named("any")


def nvidia_name(load: Callable[[], Any]) -> str:
    """Name of the first NVIDIA GPU; empty: there is none.

    Args:
        load: Loads NVML.
    """
    try:
        nvml = load()
    except OSError:
        return ""
    if nvml.nvmlInit_v2():
        return ""
    device, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    try:
        if nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
            return ""
        is_unknown = nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
        return "" if is_unknown else f"sm_{major.value}{minor.value}"
    finally:
        nvml.nvmlShutdown()


def amd_name(nodes: Path) -> str:
    """Name of the first AMD GPU; empty: there is none.

    Args:
        nodes: Folders with a file `properties` each. Processors that are no GPU have version 0 there: 90402 is 9.4.2.
    """
    for file in sorted(nodes.glob("*/properties")):
        found = re.search(r"^gfx_target_version (\d+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if found and (version := int(found[1])):
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return ""
