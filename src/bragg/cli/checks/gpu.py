"""Checks of GPUs, their drivers, and who else wants to measure them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from bragg.cli.checks.check import Check, State, Surroundings, note, ok
from bragg.cli.machine import nvidia_driver_version, nvidia_gpu_names

GPU_TIMES = "GPU times"
_RANGES_SINCE = 24  # the range profiler, as CUPTI 12.6 counts its versions
_OWN_LIBRARY = "libbragg_core"


def check_gpu(surroundings: Surroundings) -> Check:
    """There is an NVIDIA GPU."""
    names = nvidia_gpu_names(surroundings.root / "proc/driver/nvidia")
    devices = [device.get("name", "") for device in surroundings.probe.get("devices", [])]
    found = ", ".join(devices or names)
    return ok("NVIDIA GPU", found) if found else note("NVIDIA GPU", "none", blocks=GPU_TIMES)


def check_driver(surroundings: Surroundings) -> Check:
    """The NVIDIA driver is loaded."""
    release = nvidia_driver_version(surroundings.root / "proc/driver/nvidia")
    return ok("NVIDIA driver", release) if release else note("NVIDIA driver", "not loaded", blocks=GPU_TIMES)


def check_amd(surroundings: Surroundings) -> Check:
    """AMD GPUs, which are not recorded yet."""
    if not (surroundings.root / "dev/kfd").exists():
        return ok("AMD GPU", "none")
    return note("AMD GPU", "present, and not recorded by this version", blocks="GPU times of AMD GPUs")


def check_interpreter(surroundings: Surroundings) -> Check:
    """Where Triton's kernels are executed by `bragg run`."""
    if check_gpu(surroundings).state is State.OK or (surroundings.root / "dev/kfd").exists():
        return ok("Triton kernels", "executed on the GPU (bragg run --interpret auto)")
    if find_spec("triton") is None:
        return ok("Triton kernels", "none without Triton")
    found = "executed by bragg's interpreter on the CPU, whose times are not those of a GPU (--interpret auto)"
    return note("Triton kernels", found)


def check_cupti_library(surroundings: Surroundings) -> Check:
    """CUPTI is installed somewhere."""
    candidates = surroundings.probe.get("candidates", [])
    if candidates:
        return ok("CUPTI library", f"{candidates[0]}" + (f" and {len(candidates) - 1} more" if candidates[1:] else ""))
    return _for_gpu(
        surroundings, "CUPTI library", "not found", "Set BRAGG_CUPTI_DIR, or: pip install nvidia-cuda-cupti"
    )


def check_cupti(surroundings: Surroundings) -> Check:
    """CUPTI accepts bragg as its subscriber, in a process of its own."""
    cuda: Mapping[str, Any] = surroundings.probe.get("cuda", {})
    if cuda.get("state") == "attached":
        return ok("CUPTI", f"version {cuda.get('cupti_version')} with driver {cuda.get('driver_version')}")
    failed = surroundings.probe.get("error") if "core" in surroundings.probe else None
    reason = str(cuda.get("reason") or failed or "not tried")
    return _for_gpu(surroundings, "CUPTI", reason, "See the checks around this one")


def check_cuda_injection(surroundings: Surroundings) -> Check:
    """No other tool is injected into CUDA programs."""
    return _injection(surroundings, "CUDA_INJECTION64_PATH", "GPU times")


def check_itt_injection(surroundings: Surroundings) -> Check:
    """No other tool collects ITT tasks."""
    return _injection(surroundings, "INTEL_LIBITTNOTIFY64", "PyTorch operators that come through ITT")


def check_nvtx_injection(surroundings: Surroundings) -> Check:
    """No other tool takes NVTX ranges; CUPTI itself, which some images set, takes its only subscription with them."""
    holder = surroundings.environ.get("NVTX_INJECTION64_PATH", "")
    if "cupti" not in holder:
        return _injection(surroundings, "NVTX_INJECTION64_PATH", "NVTX ranges")
    return Check("NVTX_INJECTION64_PATH", State.LIMITED, holder, GPU_TIMES, "Unset it: CUPTI has one subscriber")


def check_visible_devices(surroundings: Surroundings) -> Check:
    """CUDA_VISIBLE_DEVICES does not hide every GPU."""
    value = surroundings.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return ok("CUDA_VISIBLE_DEVICES", "not set: all GPUs")
    if value.strip() in ("", "-1", "NoDevFiles"):
        return _for_gpu(surroundings, "CUDA_VISIBLE_DEVICES", f"{value!r} hides every GPU", "Unset it")
    return ok("CUDA_VISIBLE_DEVICES", value)


def check_hip_devices(surroundings: Surroundings) -> Check:
    """The two variables that choose AMD GPUs do not contradict each other."""
    hip, rocr = (surroundings.environ.get(name) for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"))
    if hip is None or rocr is None or hip == rocr:
        return ok("HIP_VISIBLE_DEVICES", hip or "not set")
    found = f"{hip!r}, but ROCR_VISIBLE_DEVICES is {rocr!r}"
    return note("HIP_VISIBLE_DEVICES", found, blocks="the GPUs that only one of them names", fix="Set one of the two")


def check_counters(surroundings: Surroundings) -> Check:
    """Whether the driver keeps hardware counters for administrators; kernel times do not need them."""
    match = re.search(r"RmProfilingAdminOnly: (\d)", surroundings.read("proc/driver/nvidia/params") or "")
    if match is None:
        return ok("GPU counters", "no NVIDIA driver to ask")
    if match[1] == "0":
        return ok("GPU counters", "open to every user")
    fix = "As administrator: options nvidia NVreg_RestrictProfilingToAdminUsers=0; or start with --cap-add SYS_ADMIN"
    return note(
        "GPU counters", "for administrators; kernel times work", blocks="PC sampling, hardware counters", fix=fix
    )


def check_exact_counters(surroundings: Surroundings) -> Check:
    """CUPTI is new enough to count single launches, and the driver lets this user; no launch is counted."""
    cuda: Mapping[str, Any] = surroundings.probe.get("cuda", {})
    if cuda.get("state") != "attached":
        return note("Exact counters", "not tried")
    blocks = "bragg run --counters-exact"
    if int(cuda.get("cupti_version", 0)) < _RANGES_SINCE:
        fix = "Install a CUPTI of CUDA 12.6 or later, and set BRAGG_CUPTI_DIR to its directory"
        return note("Exact counters", "CUPTI is older than 12.6", blocks=blocks, fix=fix)
    counters = check_counters(surroundings)
    if counters.state is not State.OK:
        return note("Exact counters", "counters are for administrators", blocks=blocks, fix=counters.fix)
    return ok("Exact counters", "possible; bragg doctor --counters lists what this GPU counts")


def check_sampling(surroundings: Surroundings) -> Check:
    """Instructions of kernels can be sampled, tried on the first GPU."""
    reason = surroundings.probe.get("sampling")
    if reason is None:
        return note("Instruction samples", "not tried")
    if not reason:
        return ok("Instruction samples", "can be taken")
    what, _, fix = str(reason).partition(": ")
    return note("Instruction samples", what, blocks="bragg run --sample", fix=fix)


def check_telemetry(surroundings: Surroundings) -> Check:
    """NVML answers, which knows power, clocks and temperature."""
    nvml: Mapping[str, Any] = surroundings.probe.get("nvml", {})
    if driver := nvml.get("driver"):
        return ok("Telemetry", f"NVML of driver {driver}")
    reason = str(nvml.get("reason") or "not tried")
    if check_gpu(surroundings).state is not State.OK:
        return note("Telemetry", reason)
    fix = "Install the driver's library (libnvidia-compute), or give the container NVIDIA_DRIVER_CAPABILITIES=utility"
    return note("Telemetry", reason, blocks="bragg run --telemetry", fix=fix)


def _injection(surroundings: Surroundings, variable: str, blocks: str) -> Check:
    holder = surroundings.environ.get(variable, "")
    if not holder or _OWN_LIBRARY in holder:
        return ok(variable, "free" if not holder else "bragg")
    return Check(variable, State.LIMITED, f"belongs to {holder}", blocks, "Unset it, or start without the other tool")


def _for_gpu(surroundings: Surroundings, name: str, found: str, fix: str) -> Check:
    """A defect where there is a GPU to measure; elsewhere it does not matter."""
    if check_gpu(surroundings).state is State.OK:
        return Check(name, State.LIMITED, found, GPU_TIMES, fix)
    return note(name, found)


CHECKS = (
    check_gpu,
    check_driver,
    check_amd,
    check_interpreter,
    check_cupti_library,
    check_cupti,
    check_counters,
    check_exact_counters,
    check_sampling,
    check_telemetry,
    check_cuda_injection,
    check_itt_injection,
    check_nvtx_injection,
    check_visible_devices,
    check_hip_devices,
)
