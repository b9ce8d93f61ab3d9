"""Arrays in GPU memory that are not PyTorch's: they are copied to the host for a launch, and back after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.errors import UsageError
from bragg.model.table import Array

# How packages copy to the host and back: CuPy, then Numba.
_COPIES = (("get", "set"), ("copy_to_host", "copy_to_device"))


class DeviceArrays:
    """The host's copies of what has `__cuda_array_interface__`, one for each array in GPU memory."""

    def __init__(self) -> None:
        self._copies: dict[tuple[Any, ...], tuple[Any, Array]] = {}

    @property
    def has_copies(self) -> bool:
        """There is at least one."""
        return bool(self._copies)

    def on_host(self, name: str, value: Any) -> Array:
        """The copy of an array, with its shape and type; that of another one if both are the same memory.

        Raises:
            UsageError: The array does not say how to copy it.
        """
        interface = value.__cuda_array_interface__
        key = tuple(str(interface.get(part)) for part in ("data", "shape", "strides", "typestr"))
        if key not in self._copies:
            self._copies[key] = (value, np.array(getattr(value, _methods(name, value)[0])()))
        return self._copies[key][1]

    def copy_back(self) -> None:
        """Write the copies to GPU memory."""
        for device, host in self._copies.values():
            getattr(device, _methods("", device)[1])(host)


def _methods(name: str, value: Any) -> tuple[str, str]:
    for pair in _COPIES:
        if all(hasattr(value, method) for method in pair):
            return pair
    raise UsageError(
        f"the argument {name} is in GPU memory, and {type(value).__name__} does not say how to copy it",
        hint="Pass a tensor of PyTorch: torch.as_tensor(array)",
    )
