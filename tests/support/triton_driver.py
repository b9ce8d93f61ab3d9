"""Triton without a GPU: its JIT, compiler, caches and hooks for sm_90, on the fake CUDA driver or on none.

Self-contained, like `fake_cuda`, for scripts that are recorded with `bragg run`.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

import triton
from fake_cuda import FakeCuda
from triton.backends.compiler import GPUTarget


class Tensor:
    """What the JIT looks at in a tensor.

    Args:
        dtype: As PyTorch spells it, such as `float16`.
        address: Where it is; a multiple of 16 as allocators make it, or not.
    """

    def __init__(self, dtype: str = "float32", address: int = 4096) -> None:
        self.dtype = dtype
        self._address = address

    def data_ptr(self) -> int:
        return self._address

    def ptr_range(self) -> int:
        return 1 << 20


class TritonDriver:
    """Takes the place of Triton's driver.

    Args:
        cuda: Where kernels are launched; None: nowhere.

    Attributes:
        loaded: Handle and kernel name of each binary that was loaded.
        launched: Handles of the launches.
    """

    def __init__(self, cuda: FakeCuda | None = None) -> None:
        self._cuda = cuda
        self._handles = itertools.count(1 << 40, 64)
        self.utils = self
        self.launcher_cls = lambda src, metadata: self._launch
        self.loaded: list[tuple[int, str]] = []
        self.launched: list[int] = []

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232_448}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        self.loaded.append((self._function(name, kernel), name))
        return 1, self.loaded[-1][0], 32, 0, 1024

    def unload_module(self, module: int) -> None:
        pass

    def _function(self, name: str, binary: bytes) -> int:
        """A handle of its own for each binary, as the driver gives it."""
        if self._cuda is None:
            return next(self._handles)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._cuda.call("cuModuleLoadData", ctypes.byref(module), binary)
        self._cuda.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function.value or 0

    def _launch(self, x: int, y: int, z: int, stream: int, function: int, packed: object, metadata: object,
                enter: Callable[[object], object] | None, leave: Callable[[object], object] | None,
                *arguments: Any) -> None:  # fmt: skip
        """As Triton's launcher: the hooks around one call of the driver."""
        if enter is not None:
            enter(metadata)
        self.launched.append(function)
        if self._cuda is not None:
            sizes = [ctypes.c_uint(size) for size in (x, y, z, 128, 1, 1, 0)]
            self._cuda.call("cuLaunchKernel", ctypes.c_void_p(function), *sizes, None, None, None)
        if leave is not None:
            leave(metadata)


class _WithoutTorch(MetaPathFinder):
    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "torch":
            raise ModuleNotFoundError("PyTorch is left out", name=name)


def use(cuda: FakeCuda | None = None) -> TritonDriver:
    """Let Triton use this driver from now on, and neither import PyTorch (1.5 s) nor hash its own library (0.3 s)."""
    driver = TritonDriver(cuda)
    triton.runtime.driver.set_active(driver)
    sys.meta_path.insert(0, _WithoutTorch())
    triton.runtime.cache.triton_key = lambda: triton.__version__
    return driver
