"""Which kernels of Triton get clocks, and what they all say at the end."""

from __future__ import annotations

import os
import re
import time
from threading import Lock, local

from bragg.record.hooks.triton import kernel_names
from bragg.record.inside import metadata
from bragg.record.inside.notes import guarded, note
from bragg.record.instrument.choice import is_chosen
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
# For launches of all kernels that the GPU is not done with.
_WAIT_S = 5.0


class _Tuning(local):
    """Whether this thread is comparing configurations, whose launches are not those that count."""

    depth = 0


_TUNING = _Tuning()


class _Chosen:
    """The kernels of a recording that have clocks: the first ones that are launched, but for launches that tune."""

    def __init__(self, triton: ModuleType, limits: Limits) -> None:
        self._triton = triton
        self._limits = limits
        self._timed: list[TimedKernel] = []
        self._is_full = False
        self._lock = Lock()

    def timed(self, kernel: Any, name: str, launch: Callable[..., Any]) -> Callable[..., Any]:
        """What launches a kernel from now on."""
        with self._lock:
            if len(self._timed) < _SHARE_OF_BUFFER:
                return guarded(self._made)(kernel, name, launch) or launch
            if not self._is_full:
                self._is_full = True
                note(f"{name} and later kernels have no clocks: those of {_SHARE_OF_BUFFER} fill the buffer")
            return launch

    def results(self, is_end: bool) -> list[dict[str, Any]]:
        """What was measured since the last time."""
        until_s = time.monotonic() + (_WAIT_S if is_end else 0)
        found = (each.result(max(until_s - time.monotonic(), 0), is_end=is_end) for each in self._timed)
        return [each for each in found if each is not None]

    def _made(self, kernel: Any, name: str, launch: Callable[..., Any]) -> TimedKernel | None:
        from bragg.code.instrument.assembling import find_ptxas, target_of

        driver = self._triton.runtime.driver.active

        def load(symbol: str, cubin: bytes, shared_bytes: int) -> tuple[int, int]:
            module, function, *_ = driver.utils.load_binary(symbol, cubin, shared_bytes, driver.get_current_device())
            return module, function

        try:
            ptxas = find_ptxas(self._triton.__path__[0], target_of(kernel.asm["ptx"]), os.environ)
            made = TimedKernel(kernel, name, launch, load, ptxas, self._limits)
        except Exception as error:  # noqa: BLE001 - the program's kernel is launched as it is
            note(f"{name} has no clocks: {error}")
            return None
        self._timed.append(made)
        return made


class _Undecided:
    """Stands in place of a kernel's launcher until its first launch that counts."""

    def __init__(self, kernel: Any, name: str, launch: Callable[..., Any], chosen: _Chosen) -> None:
        self._kernel = kernel
        self._name = name
        self._launch = launch
        self._chosen: _Chosen | None = chosen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launch, name)

    def __call__(self, *arguments: Any) -> Any:
        """Launch."""
        if not _TUNING.depth and self._chosen is not None:
            chosen, self._chosen = self._chosen, None
            self._launch = chosen.timed(self._kernel, self._name, self._launch)
        return self._launch(*arguments)


def instrument_kernels(options: Mapping[str, Any], triton: ModuleType) -> Callable[[], None] | None:
    """Give clocks to the kernels that are loaded from now on and that are wanted.

    Args:
        options: What to record, as `RecordConfig.options` lists it.
        triton: The package.

    Returns:
        What undoes it: kernels that have clocks keep them, and are launched without.
    """
    wanted = re.compile(options["instrument"])
    buffer_bytes = (options["instrument_buffer_mb"] << 20) // _SHARE_OF_BUFFER
    limits = Limits(options["instrument_budget"], buffer_bytes, options["data"] == "trace")
    chosen = _Chosen(triton, limits)

    def loaded(kernel: Any, name: str) -> None:
        if wanted.search(name) and is_chosen(getattr(kernel.src, "fn", None)):
            launcher = "_run" if "_run" in vars(kernel) else "run"  # Triton 3.4 has the launcher as an attribute
            setattr(kernel, launcher, _Undecided(kernel, name, vars(kernel)[launcher], chosen))

    metadata.tell_at_stop(META, chosen.results)
    undo_loading, undo_tuning = kernel_names.follow_loading(loaded), _follow_tuning(triton)

    def undo() -> None:
        undo_loading()
        undo_tuning()

    return undo


def _follow_tuning(triton: ModuleType) -> Callable[[], None]:
    """Know which launches compare configurations."""
    tuner = triton.runtime.autotuner.Autotuner
    bench = tuner._bench

    def counted(*arguments: Any, **options: Any) -> Any:
        _TUNING.depth += 1
        try:
            return bench(*arguments, **options)
        finally:
            _TUNING.depth -= 1

    tuner._bench = counted
    return lambda: setattr(tuner, "_bench", bench)
