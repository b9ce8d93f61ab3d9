"""Triton's driver where there is no GPU: it answers as a Hopper GPU would, and tensors live on the CPU."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from bragg.debug.faults import Unsupported
from bragg.debug.targets import DEFAULT_TARGET, Target, target_named

_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvhost-ctrl-gpu", "/dev/kfd", "/dev/dxg")
# Of one H200. Source: its CUDA device properties.
_PROPERTIES = {
    "max_shared_mem": 232_448,
    "max_num_regs": 65_536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1_980_000,
    "mem_clock_rate": 3_201_000,
    "mem_bus_width": 6_144,
}
# What a kernel is said to need: registers of a thread, spilled bytes, threads of a block. It is never loaded.
_NEEDS = (32, 0, 1024)


def has_gpu() -> bool:
    """A device node of a GPU is there. Triton's own search imports PyTorch: seconds."""
    return any(Path(device).exists() for device in _GPU_DEVICES)


def use_host_driver(target: Target | None = None) -> None:
    """Let Triton ask a driver for the CPU from now on, unless the program has chosen one.

    Args:
        target: The GPU that it answers as; None: a Hopper GPU.
    """
    if _chosen_driver() is None:
        sys.modules["triton.runtime"].driver.set_active(HostDriver(target))


def has_host_driver() -> bool:
    """Triton asks the driver for the CPU."""
    return isinstance(_chosen_driver(), HostDriver)


def _chosen_driver() -> Any:
    """The driver that Triton asks; None: it has not searched for one yet, which asking for `active` would start."""
    state = vars(sys.modules["triton.runtime"].driver)
    found = state["_active"] if "_active" in state else state["active"]  # `active` in Triton 3.4
    return None if type(found).__name__ == "LazyProxy" else found


class HostDriver:
    """What scripts and Triton's compiler ask a driver."""

    def __init__(self, target: Target | None = None) -> None:
        self.utils = self
        self._target = target or target_named(DEFAULT_TARGET)

    def get_active_torch_device(self) -> Any:
        """The CPU."""
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default one."""
        return 0

    def get_current_target(self) -> Any:
        """A Hopper GPU, unless another one was chosen: scripts choose their configurations by it."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self._target.backend, self._target.arch, self._target.warp_size)

    def get_device_properties(self, device: int | None = None) -> dict[str, int]:
        """Of the same GPU."""
        return dict(_PROPERTIES)

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """A kernel that was only compiled: module, function, and what it needs."""
        return 0, 0, *_NEEDS

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., NoReturn]:
        """Launches are executed before they get here; one that does get here is not, and must not seem to be."""

        def refuse(*_arguments: Any) -> NoReturn:
            raise Unsupported("a compiled kernel was launched in a way that bragg does not know: it was not executed")

        return refuse

    def get_device_interface(self) -> Any:
        """What `triton.testing` measures with."""
        return HostDevice

    def get_empty_cache_for_benchmark(self) -> None:
        """No cache is cleared between runs."""

    def clear_cache(self, cache: None) -> None:
        """The same."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Runs a kernel once; all configurations are equally fast."""

        def once(call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_options: Any) -> list[float]:
            call()
            return [1.0] * len(quantiles)

        return once


class HostEvent:
    """A moment, as `torch.cuda.Event` is one."""

    def __init__(self, enable_timing: bool = False, **_options: Any) -> None:
        self._time_ns = 0

    def record(self, stream: Any = None) -> None:
        """It is now."""
        self._time_ns = time.perf_counter_ns()

    def elapsed_time(self, end: HostEvent) -> float:
        """Milliseconds between two moments."""
        return (end._time_ns - self._time_ns) * 1e-6

    def synchronize(self) -> None:
        """Launches have ended when they return."""


class HostDevice:
    """The parts of `torch.cuda` that programs time kernels with and choose their configurations by."""

    Event = HostEvent

    @staticmethod
    def is_available() -> bool:
        """Programs that end, and tests that are left out, where there is no GPU, have one here."""
        return True

    @staticmethod
    def device_count() -> int:
        """The only one."""
        return 1

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Launches have ended when they return."""

    @staticmethod
    def current_device() -> int:
        """The only one."""
        return 0

    @staticmethod
    @contextmanager
    def device(device: Any = None) -> Iterator[None]:
        """Choose the only one."""
        yield

    @staticmethod
    def get_device_name(device: Any = None) -> str:
        """That of the GPU whose properties the driver gives."""
        return "NVIDIA H200"

    @staticmethod
    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """Hopper's."""
        return 9, 0

    @staticmethod
    def get_device_properties(device: Any = None) -> SimpleNamespace:
        """Of the same GPU, by the names of PyTorch."""
        return SimpleNamespace(
            name=HostDevice.get_device_name(),
            major=9,
            minor=0,
            multi_processor_count=_PROPERTIES["multiprocessor_count"],
            shared_memory_per_block_optin=_PROPERTIES["max_shared_mem"],
            regs_per_multiprocessor=_PROPERTIES["max_num_regs"],
            warp_size=_PROPERTIES["warpSize"],
            gcnArchName="",  # PyTorch without CUDA takes every GPU for AMD's.
        )
