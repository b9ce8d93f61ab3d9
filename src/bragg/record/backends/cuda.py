"""NVIDIA GPUs through CUPTI."""
# ruff: noqa: PTH110, PTH118, PTH123, PTH208
# Every recorded process imports this module, and `pathlib` would add 10 ms to its start.

from __future__ import annotations

import os
import re

from bragg.record import variables
from bragg.record.backends.backend import Backend
from bragg.record.hooks.frameworks import operator_hooks
from bragg.record.hooks.jax import profiler
from bragg.record.hooks.torch import inductor, itt_operators, shared_cupti
from bragg.record.hooks.triton import kernel_names, launch_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from bragg.record.hooks.imports import Hook


_DRIVER = "libcuda.so.1"
# A desktop or server GPU, the Windows Subsystem for Linux, an embedded GPU.
_DEVICE_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")
_DRIVER_VERSION = "/proc/driver/nvidia/version"
# (first driver release, CUDA major version it supports). Source: CUDA 13.0 release notes, table of minimum drivers.
_SUPPORTED_MAJORS = ((580, 13), (525, 12))
_PACKAGE_DIRECTORIES = (
    "nvidia/cu13/lib",
    "nvidia/cuda_cupti/lib",
    "triton/backends/nvidia/lib/cupti-blackwell",
    "triton/backends/nvidia/lib/cupti",
)
_TOOLKIT_DIRECTORIES = ("extras/CUPTI/lib64", "lib64")
_TOOLKITS = "/usr/local"
_TRITON_CUPTI_DIR = "TRITON_CUPTI_LIB_PATH"  # what Proton takes
_LIBRARY = re.compile(r"libcupti\.so(?:\.(\d{1,2}))?$")


class Cuda(Backend):
    """The backend of NVIDIA GPUs."""

    name = "cuda"
    injection_variables = (variables.CUDA_INJECTION, variables.ITT_COLLECTOR, variables.NVTX_INJECTION)
    sample_interval_us = 10_000  # 100 samples a second show where the host waits and cost less than 0.1 %.

    def missing(self, environ: Mapping[str, str]) -> str:
        """A device node or the driver; it is loaded but not initialised, so that the process may still fork."""
        if not any(map(os.path.exists, _DEVICE_NODES)) and not _driver_on_library_path(environ):
            return "there is no NVIDIA GPU: no device node of its driver"
        import ctypes

        try:
            ctypes.CDLL(_DRIVER)
        except OSError as error:
            return f"the NVIDIA driver cannot be loaded: {error}"
        return ""

    def library_candidates(self, environ: Mapping[str, str], search_path: Sequence[str]) -> list[str]:
        """CUPTI libraries: the user's choice, then by major version: newest first, those beyond the driver last."""
        wanted = (environ.get(name, "") for name in (variables.CUPTI_DIR, _TRITON_CUPTI_DIR))
        chosen = [path for directory in wanted for path in _libraries(directory)]
        inherited = [path for path in environ.get(variables.CUPTI_PATHS, "").split(os.pathsep) if path]
        newest = _newest_supported_major()
        found = [path for directory in _directories(environ, search_path) for path in _libraries(directory)]
        found.sort(key=lambda path: (_major(path) <= newest, _major(path)), reverse=True)
        return list(dict.fromkeys([*chosen, *found, *inherited]))

    def hooks(self, options: Mapping[str, Any]) -> list[Hook]:
        """Inherit the context of `backward` in PyTorch's threads, which launch kernels; share CUPTI; name kernels."""
        asks = options["launch_metadata"]
        clocks: list[Hook] = []
        if options["instrument"]:
            from bragg.record.instrument.kernels import clock_hooks

            clocks = clock_hooks(options)
        return [
            ("torch", itt_operators.inherit_context),
            ("torch", itt_operators.share_device_records),
            *((module, shared_cupti.share_cupti) for module in shared_cupti.MODULES),
            (profiler.MODULE, profiler.share_device_records),
            *operator_hooks(options),
            *clocks,
            ("triton", kernel_names.name_kernels),
            (inductor.MODULE, inductor.name_kernels),
            *([("triton", launch_metadata.ask_launches)] if asks else []),
        ]


def _driver_on_library_path(environ: Mapping[str, str]) -> bool:
    """Whether a driver is named outright; the toolkit's `compat` directory comes without a device."""
    directories = environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return any(
        directory and "compat" not in directory and os.path.exists(os.path.join(directory, _DRIVER))
        for directory in directories
    )


def _newest_supported_major() -> int:
    """Newest CUDA major version of the driver; the newest that exists where the driver does not say."""
    try:
        with open(_DRIVER_VERSION, encoding="ascii", errors="replace") as file:
            release = re.search(r"  (\d{3})\.\d", file.readline())
    except OSError:
        release = None
    if release is None:
        return 99
    return next((major for first, major in _SUPPORTED_MAJORS if int(release[1]) >= first), 0)


def _directories(environ: Mapping[str, str], search_path: Sequence[str]) -> Iterator[str]:
    """Where CUPTI may be: beside the frameworks that bring their own, then toolkits."""
    for package in _PACKAGE_DIRECTORIES:
        for entry in search_path:
            yield os.path.join(entry, package)
    toolkits = [environ.get("CUDA_HOME", ""), environ.get("CUDA_PATH", ""), *_installed_toolkits()]
    for toolkit in filter(None, toolkits):
        for directory in _TOOLKIT_DIRECTORIES:
            yield os.path.join(toolkit, directory)


def _installed_toolkits() -> list[str]:
    names = sorted(_list(_TOOLKITS), reverse=True)
    return [os.path.join(_TOOLKITS, name) for name in names if name.startswith("cuda")]


def _libraries(directory: str) -> list[str]:
    """The CUPTI library of a directory, under its most telling name; none or one."""
    names = [name for name in _list(directory) if _LIBRARY.match(name)]
    return [os.path.join(directory, max(names))] if names else []


def _major(path: str) -> int:
    """CUDA major version that a library's name tells; 0: it does not."""
    name = _LIBRARY.search(path)
    return int(name[1] or 0) if name else 0


def _list(directory: str) -> list[str]:
    try:
        return os.listdir(directory) if directory else []
    except OSError:
        return []
