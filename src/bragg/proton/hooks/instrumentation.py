"""The hook of sessions that measure inside kernels."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bragg.proton.flags import flags
from bragg.proton.hooks.hook import Hook, HookManager
from bragg.proton.hooks.launch import LaunchHook
from bragg.proton.inside.compiling import ALIGNMENT, Kernel, attach, kernel_of, mode_of, require_triton
from bragg.proton.inside.records import read_records
from bragg.proton.inside.results import Launch, Results
from bragg.proton.mode import InstrumentationMode, Optimize
from bragg.proton.recording import open_scopes
from bragg.record.inside.notes import note

__all__ = ["InstrumentationHook"]

_VERSION, _HEADER_BYTES = 1, 40
# As Proton has them: the number of a GPU's kind in the header, and the cycles that `time_shift` takes off a record.
_HEADER_KINDS, _RECORD_CYCLES = {"CUDA": 1, "HIP": 2}, {"CUDA": 7, "HIP": 36}
_MAX_BYTES = 1 << 32

# By handle of the driver's function: a kernel that is loaded stays so for the next session.
_kernels: dict[int, Kernel] = {}


class _Memory(threading.local):
    """Memory for the records of this thread's launch."""

    buffer: Any = None


class InstrumentationHook(Hook):
    """Records of kernels are read after each launch, for which the launch is waited for, as Proton does.

    Args:
        mode_obj: What to measure.

    Attributes:
        results: What was measured; that of its session.

    Raises:
        InvalidArgument: The mode is unknown, or the compiler has no passes for it.
    """

    priority = 0
    active_count: ClassVar[int] = 0
    enable_host_buffer: ClassVar[bool] = False
    host_buffer: ClassVar[Any] = None
    profile_buffer_size: ClassVar[int] = 1
    profile_buffer_alignment: ClassVar[int] = ALIGNMENT

    def __init__(self, mode_obj: str | InstrumentationMode | None) -> None:
        self.mode = mode_of(mode_obj)
        self.results = Results(keeps_events=False)
        self._memory = _Memory()
        self._kept: list[Any] = []  # graphs that were captured continue to write here
        self._triton: Any = None
        self._detach: Callable[[], None] | None = None

    def activate(self) -> None:
        """Let kernels that are compiled from now on have records.

        Raises:
            RuntimeError: Another one is active.
            ProfilerUnavailable: There is no Triton, or no GPU, that can.
        """
        if InstrumentationHook.active_count > 0:
            raise RuntimeError("Only one instance of the instrumentation hook can be active at a time.")
        self._triton = require_triton(self.mode)
        self.results.kind = self._triton.runtime.driver.active.get_current_target().backend.upper()
        self._detach = attach(self._triton, self.mode, self._allocate)
        InstrumentationHook.active_count += 1
        flags.instrumentation_on = True

    def deactivate(self) -> None:
        """Let another one be active."""
        if self._detach is None:
            return
        self._detach()
        self._detach = None
        InstrumentationHook.active_count -= 1
        InstrumentationHook.host_buffer = None
        flags.instrumentation_on = False

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """Read what a kernel's scopes are called."""
        if function:
            _kernels[function] = kernel_of(metadata_group)

    def enter(self, metadata: Any) -> None:
        """Memory was taken before, if the kernel needs some."""
        if InstrumentationHook.enable_host_buffer:
            InstrumentationHook.host_buffer = None

    def exit(self, metadata: Any) -> None:
        """Wait for the launch, and read its records."""
        buffer, self._memory.buffer = self._memory.buffer, None
        kernel = _kernels.get(metadata.data.get("function"))
        if kernel is None:
            return
        if buffer is not None and self._is_captured():
            self._kept.append(buffer)
            note("launches that become part of a CUDA graph have no records")
            return
        image = b"" if buffer is None else self._image(buffer, metadata.data.get("stream"))
        if InstrumentationHook.enable_host_buffer:
            InstrumentationHook.host_buffer = self._host_buffer(kernel, image)
        if not image or not kernel.block_bytes:
            return
        cost = _RECORD_CYCLES[self.results.kind] if Optimize.TIMESHIFT in self.mode.optimizations else 0
        blocks = list(read_records(image, kernel.block_bytes, kernel.warps, self._measured(kernel), cost))
        device = self._triton.runtime.driver.active.get_current_device()
        path = tuple(name for name in open_scopes.path() if name)
        units = kernel.warps * (len(image) // kernel.block_bytes)
        self.results.devices.setdefault(str(device), self._device(device))
        launch = Launch((*path, self._name(metadata)), kernel.scopes, kernel.parents, units, device)
        self.results.add(launch, blocks)

    def _allocate(self, size: int, alignment: int, stream: int | None) -> Any:
        """Memory for the records of a launch, 0 everywhere."""
        import torch

        if size > _MAX_BYTES:
            raise RuntimeError(f"records of {size:,} bytes: more than 4 GiB; use buffer_size or a smaller grid")
        self._memory.buffer = torch.zeros((-(-size // alignment) * alignment,), dtype=torch.uint8, device="cuda")
        return self._memory.buffer

    def _is_captured(self) -> bool:
        import torch

        return bool(torch.cuda.is_current_stream_capturing())

    def _image(self, buffer: Any, stream: int | None) -> bytes:
        import torch

        (torch.cuda.ExternalStream(stream) if stream else torch.cuda.default_stream()).synchronize()
        image: bytes = buffer.cpu().numpy().tobytes()
        return image

    def _measured(self, kernel: Kernel) -> list[int]:
        """The warps that have records."""
        chosen = [int(each) for each in self.mode.sampling_options.split(",") if each.strip()]
        is_chosen = self.mode.sampling_strategy.name == "SELECTIVE" and chosen
        return sorted(chosen) if is_chosen else list(range(kernel.warps))

    def _name(self, metadata: Any) -> str:
        """Of the kernel, as its metadata calls it where a session asks for that."""
        if any(isinstance(hook, LaunchHook) for hook in HookManager.active_hooks):
            return str(metadata.get()["name"])
        return str(metadata.data["name"])

    def _device(self, device: int) -> dict[str, Any]:
        driver = self._triton.runtime.driver.active
        facts = driver.utils.get_device_properties(device)
        return {
            "arch": str(driver.get_current_target().arch),
            "bus_width": facts["mem_bus_width"],
            "clock_rate": facts["sm_clock_rate"],
            "memory_clock_rate": facts["mem_clock_rate"],
            "num_sms": facts["multiprocessor_count"],
        }

    def _host_buffer(self, kernel: Kernel, image: bytes) -> Any:
        """The records with a header, as Proton hands them out."""
        import torch

        measured = self._measured(kernel)
        header_bytes = _HEADER_BYTES + 4 * len(measured)
        n_blocks = len(image) // kernel.block_bytes if kernel.block_bytes else 0
        header = (
            _VERSION,
            4,
            header_bytes,
            header_bytes,
            len(image),
            _HEADER_KINDS[self.results.kind],
            n_blocks,
            kernel.warps,
        )
        words = (*header, kernel.block_bytes, len(measured), *measured)
        return torch.frombuffer(bytearray(struct.pack(f"<{len(words)}I", *words) + image), dtype=torch.uint8)
