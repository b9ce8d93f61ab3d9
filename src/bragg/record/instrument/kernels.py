"""Which kernels of Triton get clocks, and what they all say at the end."""

from __future__ import annotations

import os
import re

from bragg.record.hooks.triton import kernel_names
from bragg.record.inside import metadata
from bragg.record.inside.notes import note
from bragg.record.instrument.driver import DriverError
from bragg.record.instrument.timed_kernel import Limits, TimedKernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["META", "instrument_kernels"]

META = "inside_kernels"
"""Key of the meta."""

# Each kernel's readings stay on the GPU until the end.
_SHARE_OF_BUFFER = 4
_WAIT_S = 5.0


def instrument_kernels(options: Mapping[str, Any], triton: ModuleType) -> Callable[[], None] | None:
    """Give clocks to the kernels that are loaded from now on and that are wanted.

    Args:
        options: What to record, as `RecordConfig.options` lists it.
        triton: The package.

    Returns:
        What undoes it: kernels that have clocks keep them, and are launched without.
    """
    from bragg.code.instrument.assembling import find_ptxas

    wanted = re.compile(options["instrument"])
    timed: list[TimedKernel] = []
    limits = Limits(options["instrument_budget"], (options["instrument_buffer_mb"] << 20) // _SHARE_OF_BUFFER)

    def loaded(kernel: Any, name: str) -> None:
        if not wanted.search(name):
            return
        if len(timed) >= _SHARE_OF_BUFFER:
            note(f"{name} has no clocks: those of {_SHARE_OF_BUFFER} kernels fill the buffer")
            return
        driver = triton.runtime.driver.active

        def load(symbol: str, cubin: bytes, shared_bytes: int) -> tuple[int, int]:
            module, function, *_ = driver.utils.load_binary(symbol, cubin, shared_bytes, driver.get_current_device())
            return module, function

        launcher = "_run" if "_run" in vars(kernel) else "run"  # Triton 3.4 has the launcher as an attribute
        try:
            ptxas = find_ptxas(triton.__path__[0], _architecture(kernel), os.environ)
            each = TimedKernel(kernel, name, vars(kernel)[launcher], load, ptxas, limits)
        except (ValueError, KeyError, DriverError) as error:
            note(f"{name} has no clocks: {error}")
            return
        timed.append(each)
        setattr(kernel, launcher, each)

    def results(is_end: bool) -> list[dict[str, Any]]:
        found = (each.result(_WAIT_S if is_end else 0) for each in timed)
        return [each for each in found if each is not None]

    metadata.tell_at_stop(META, results)
    return kernel_names.follow_loading(loaded)


def _architecture(kernel: Any) -> str:
    from bragg.code.instrument.assembling import target_of

    return target_of(kernel.asm["ptx"])
