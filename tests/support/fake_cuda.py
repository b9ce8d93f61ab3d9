"""The fake CUDA driver from Python, for tests and for scripts that are recorded with `bragg run`.

Self-contained: a script that has this directory on PYTHONPATH and the fakes on LD_LIBRARY_PATH (`environment`) uses it
as a program uses CUDA.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path


class CudaError(Exception):
    """A driver call that did not succeed.

    Args:
        call: Name of the driver function.
        result: The CUresult.
    """

    def __init__(self, call: str, result: int) -> None:
        super().__init__(f"{call}: {result}")
        self.call = call
        self.result = result


class Copy(Enum):
    """Direction of a copy; the value is the driver function."""

    HOST_TO_DEVICE = "cuMemcpyHtoDAsync_v2"
    DEVICE_TO_HOST = "cuMemcpyDtoHAsync_v2"
    DEVICE_TO_DEVICE = "cuMemcpyDtoDAsync_v2"


class ConditionalNode(ctypes.Structure):
    """CUgraphNodeParams of a conditional node, as far as it is used; the union takes 232 bytes."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 3),
        ("condition", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)),
        ("context", ctypes.c_void_p),
        ("rest", ctypes.c_uint64 * 26),
    )


class Dimensions(ctypes.Structure):
    """A grid or a block, as the runtime's launch takes it."""

    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


Handle = ctypes.c_void_p
Size = tuple[int, int, int]


class FakeCuda:
    """An initialised fake driver with one device current on this thread.

    Args:
        device: Ordinal of the device.
        directory: Where the fakes are; None takes BRAGG_FAKES_DIR, else the loader's search path.
    """

    def __init__(self, device: int = 0, directory: Path | None = None) -> None:
        directory = directory or (Path(os.environ["BRAGG_FAKES_DIR"]) if "BRAGG_FAKES_DIR" in os.environ else None)
        self._library = ctypes.CDLL(str(directory / "libcuda.so.1") if directory else "libcuda.so.1")
        self._functions: dict[str, Handle] = {}
        self.call("cuInit", ctypes.c_uint(0))
        self.use_device(device)

    def call(self, name: str, *arguments: object) -> None:
        """Call a driver function; raises CudaError unless it succeeds."""
        result = int(getattr(self._library, name)(*arguments))
        if result != 0:
            raise CudaError(name, result)

    def use_device(self, device: int) -> None:
        """Make the primary context of a device current on this thread; each thread needs this."""
        context = Handle()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
        self.call("cuCtxSetCurrent", context)

    def stream(self) -> Handle:
        stream = Handle()
        self.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        return stream

    def function(self, name: str) -> Handle:
        """The kernel of that name; there is every kernel."""
        if name not in self._functions:
            function = Handle()
            self.call("cuModuleGetFunction", ctypes.byref(function), None, name.encode())
            self._functions[name] = function
        return self._functions[name]

    def load(self, cubin: bytes, *names: str) -> None:
        """Load a cubin: kernels of these names are its functions from now on."""
        module = Handle()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        for name in names:
            function = Handle()
            self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            self._functions[name] = function

    def launch(
        self,
        name: str,
        stream: Handle | None = None,
        *,
        grid: Size = (1, 1, 1),
        block: Size = (128, 1, 1),
        dynamic_shared_bytes: int = 0,
    ) -> None:
        sizes = [ctypes.c_uint(size) for size in (*grid, *block, dynamic_shared_bytes)]
        self.call("cuLaunchKernel", self.function(name), *sizes, stream, None, None)

    def launch_by_runtime(self, name: str, stream: Handle | None = None) -> None:
        """Launch as a program of the CUDA runtime does: its call has the driver's within."""
        one = Dimensions(1, 1, 1)
        self.call("cudaLaunchKernel", self.function(name), one, one, None, ctypes.c_size_t(0), stream)

    def launch_many(self, name: str, count: int, stream: Handle | None = None) -> None:
        """Launch one kernel `count` times, at the speed of the driver instead of Python's."""
        self.call("bragg_fake_launch_many", self.function(name), stream, ctypes.c_uint64(count))

    def launch_on_native_thread(self, name: str, count: int, stream: Handle | None = None) -> None:
        """Launch one kernel `count` times on a thread that has no Python, and wait for the thread."""
        self.call("bragg_fake_launch_on_thread", self.function(name), stream, ctypes.c_uint64(count))

    def copy(self, direction: Copy, size_bytes: int, stream: Handle | None = None) -> None:
        """Copy asynchronously; nothing is moved."""
        address = ctypes.c_void_p(0)
        self.call(direction.value, address, address, ctypes.c_size_t(size_bytes), stream)

    def set_memory(self, size_bytes: int, stream: Handle | None = None) -> None:
        self.call("cuMemsetD8Async", ctypes.c_uint64(0), ctypes.c_ubyte(0), ctypes.c_size_t(size_bytes), stream)

    @contextmanager
    def capture(self, stream: Handle, into: Handle | None = None) -> Iterator[Handle]:
        """Capture what the body does on a stream; the handle it gives is the graph once the body has ended.

        Args:
            stream: Not the default stream.
            into: The graph to capture into; None makes one.
        """
        graph = Handle()
        if into is None:
            self.call("cuStreamBeginCapture_v2", stream, ctypes.c_uint(0))
        else:
            self.call("cuStreamBeginCaptureToGraph", stream, into, None, None, ctypes.c_size_t(0), ctypes.c_uint(0))
        yield graph
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))

    def instantiate(self, graph: Handle) -> Handle:
        executable = Handle()
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        return executable

    def clone(self, graph: Handle) -> Handle:
        copy = Handle()
        self.call("cuGraphClone", ctypes.byref(copy), graph)
        return copy

    def graph_of(self, *children: Handle) -> Handle:
        """A graph that runs copies of other graphs."""
        graph = Handle()
        self.call("cuGraphCreate", ctypes.byref(graph), ctypes.c_uint(0))
        for child in children:
            self.call("cuGraphAddChildGraphNode", ctypes.byref(Handle()), graph, None, ctypes.c_size_t(0), child)
        return graph

    def conditional(self) -> tuple[Handle, Handle]:
        """A graph with one conditional node, and that node's body to capture into."""
        graph, condition = self.graph_of(), ctypes.c_uint64()
        self.call(
            "cuGraphConditionalHandleCreate", ctypes.byref(condition), graph, None, ctypes.c_uint(1), ctypes.c_uint(1)
        )
        params = ConditionalNode(type=13, condition=condition, size=1)
        self.call(
            "cuGraphAddNode_v2", ctypes.byref(Handle()), graph, None, None, ctypes.c_size_t(0), ctypes.byref(params)
        )
        return graph, Handle(params.bodies[0])

    def update(self, executable: Handle, graph: Handle) -> None:
        """Let an executable graph run what another graph of the same shape does."""
        result = (ctypes.c_uint64 * 3)()
        self.call("cuGraphExecUpdate_v2", executable, graph, result)

    def launch_graph(self, executable: Handle, stream: Handle | None = None, count: int = 1) -> None:
        """Launch an executable graph `count` times, at the speed of the driver."""
        self.call("bragg_fake_launch_graph_many", executable, stream, ctypes.c_uint64(count))

    def destroy_graph(self, graph: Handle) -> None:
        self.call("cuGraphDestroy", graph)

    def destroy_executable(self, executable: Handle) -> None:
        self.call("cuGraphExecDestroy", executable)

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")

    def now_ns(self) -> int:
        """Time of the virtual GPU, in ns; CLOCK_REALTIME unless it runs ahead."""
        now = self._library.bragg_fake_now_ns
        now.restype = ctypes.c_uint64
        return int(now())

    def set_kernel_ns(self, name: str, duration_ns: int) -> None:
        """Let the kernel of that name last this long from now on."""
        self._library.bragg_fake_set_function_ns(self.function(name), ctypes.c_uint64(duration_ns))

    def set_knob(self, name: str, value: int) -> None:
        """Turn a knob of native/tests/fakes/settings.h, in the driver and in an attached CUPTI."""
        setter = self._library.bragg_fake_set
        setter.restype = ctypes.c_bool
        if not setter(name.encode(), ctypes.c_int64(value)):
            raise KeyError(name)

    def fail(self, call: str, result: int) -> None:
        """Let a driver or CUPTI function return this result from now on; 0 lets it work again."""
        self._library.bragg_fake_fail(call.encode(), ctypes.c_uint(result))


def environment(directory: Path, settings: Mapping[str, object] | None = None) -> dict[str, str]:
    """Variables for a process that is to find the fakes.

    Args:
        directory: Where the fakes are.
        settings: Values for BRAGG_FAKE_<key>, such as {"CUPTI_VERSION": "12.8", "DROP_EVERY": 3}.
    """
    inherited = os.environ.get("LD_LIBRARY_PATH")
    path = f"{directory}:{inherited}" if inherited else str(directory)
    fakes = {f"BRAGG_FAKE_{name}": str(value) for name, value in (settings or {}).items()}
    found = {"LD_LIBRARY_PATH": path, "BRAGG_CUPTI_DIR": str(directory), "BRAGG_FAKES_DIR": str(directory)}
    return {**found, **fakes}
