"""The few calls of NVIDIA's driver that measuring inside of kernels needs."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_NOT_READY = 600
_RELAXED = 2
_NON_BLOCKING = 1
_MULTIPROCESSORS = 16
# To queue a launch between two events takes the host 20 to 50 us.
_HOLD_US = 200


class DriverError(Exception):
    """A call failed; the message names it."""


class Driver:
    """Calls in the context that is current where this is made.

    Raises:
        DriverError: There is no driver, or no context.
    """

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError(str(error)) from error
        self._sleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
        self._context = self._made("cuCtxGetCurrent")
        if not self._context.value:
            raise DriverError("no context is current")
        with self.relaxed():
            self._stream = self._made("cuStreamCreate", _NON_BLOCKING)

    def is_capturing(self, stream: int) -> bool:
        """Whether what is launched into a stream becomes part of a graph."""
        status = ctypes.c_int()
        self._call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Calls that a capture of another thread forbids are allowed, and do not break it."""
        mode = ctypes.c_int(_RELAXED)
        self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    @contextmanager
    def current(self) -> Iterator[None]:
        """This context is current, on whatever thread."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def zeros(self, size_bytes: int) -> int:
        """Memory of the GPU, 0 everywhere when the program's next launch can see it."""
        memory = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size_bytes))
        self.clear(memory.value, size_bytes)
        return memory.value

    def clear(self, address: int, size_bytes: int) -> None:
        """Set memory of the GPU to 0, in the order of `zeros`."""
        size = ctypes.c_size_t(size_bytes)
        self._call("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0), size, self._stream)

    def symbol(self, module: int, name: str) -> int:
        """Address of a variable of a module."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._call(
            "cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), ctypes.c_void_p(module), name.encode()
        )
        return address.value

    def resident_blocks(self, function: int, threads: int, shared_bytes: int) -> int:
        """Blocks of a function that fit on the GPU at once."""
        device, multiprocessors, each = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("cuCtxGetDevice", ctypes.byref(device))
        self._call("cuDeviceGetAttribute", ctypes.byref(multiprocessors), ctypes.c_int(_MULTIPROCESSORS), device)
        needs = ctypes.c_void_p(function), ctypes.c_int(threads), ctypes.c_size_t(shared_bytes)
        self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(each), *needs)
        return multiprocessors.value * each.value

    def write(self, address: int, content: bytes) -> int:
        """Write to the GPU, in the order of `zeros`; returns an event that is done when it is written."""
        size = ctypes.c_size_t(len(content))
        self._call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), content, size, self._stream)
        written = self.event()
        self.record(written, self._stream.value or 0)
        return written

    def read(self, address: int, size_bytes: int) -> bytes:
        """Read from the GPU what nothing writes any more."""
        buffer = ctypes.create_string_buffer(size_bytes)
        self._call("cuMemcpyDtoHAsync_v2", buffer, ctypes.c_uint64(address), ctypes.c_size_t(size_bytes), self._stream)
        self._call("cuStreamSynchronize", self._stream)
        return buffer.raw

    def event(self) -> int:
        """An event that takes the time."""
        return int(self._made("cuEventCreate", 0).value or 0)

    def hold(self, stream: int) -> None:
        """Let a stream wait until the host has queued what follows, so that events around it do not time the host."""
        self._call("cuLaunchHostFunc", ctypes.c_void_p(stream), self._sleep, ctypes.c_void_p(_HOLD_US))

    def record(self, event: int, stream: int) -> None:
        """Let a stream pass an event."""
        self._call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def is_done(self, event: int) -> bool:
        """Whether a stream has passed an event."""
        result = self._library.cuEventQuery(ctypes.c_void_p(event))
        if result not in (0, _NOT_READY):
            raise DriverError(f"cuEventQuery returned {result}")
        return bool(result == 0)

    def between_ns(self, first: int, second: int) -> float:
        """Time between two events that are done."""
        time_ms = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(time_ms), ctypes.c_void_p(first), ctypes.c_void_p(second))
        return time_ms.value * 1e6

    def _made(self, name: str, *arguments: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call(name, ctypes.byref(handle), *map(ctypes.c_uint, arguments))
        return handle

    def _call(self, name: str, *arguments: object) -> None:
        if result := getattr(self._library, name)(*arguments):
            raise DriverError(f"{name} returned {result}")
