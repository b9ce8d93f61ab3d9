"""The kernels of a recording that have clocks: the first ones that are launched."""

from __future__ import annotations

import os
import re
import time
from threading import Lock

from bragg.code.instrument.probes import Probe
from bragg.record.inside.notes import guarded, note
from bragg.record.instrument.choice import is_chosen
from bragg.record.instrument.compiled_kernel import overrides_machine_code
from bragg.record.instrument.timed_kernel import Limits, TimedKernel
from bragg.record.instrument.tuning import is_tuning
from bragg.record.region_names import PROBES, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


# Each kernel's readings stay on the GPU until the end.
_SHARE_OF_BUFFER = 4
# For launches of all kernels that the GPU is not done with.
_WAIT_S = 5.0


class Chosen:
    """The kernels of a recording that have clocks: the first ones that are launched, except launches that tune.

    Args:
        options: What to record, as `RecordConfig.options` lists it.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._pattern = re.compile(options["instrument"])
        buffer_bytes = (options["instrument_buffer_mb"] << 20) // _SHARE_OF_BUFFER
        probes = [Probe(name) for name in chosen(options["instrument_probes"], PROBES)]
        has_timeline, in_shared = options["data"] == "trace", options["instrument_shared"]
        self._limits = Limits(options["instrument_budget"], buffer_bytes, has_timeline, probes, in_shared)
        self._timed: list[TimedKernel] = []
        self._is_full = False
        self._has_ended = False
        self._lock = Lock()
        os.register_at_fork(after_in_child=self._forget)

    def end(self) -> None:
        """The recording ends: no further kernel gets clocks."""
        self._has_ended = True

    def wants(self, name: str, function: object) -> bool:
        """Whether a kernel may have clocks.

        Args:
            name: Of its frames.
            function: What the program decorated; None: nothing.
        """
        return bool(self._pattern.search(name)) and is_chosen(function)

    def undecided(self, kernel: Callable[[], Any], name: str, launch: Callable[..., Any]) -> Callable[..., Any]:
        """What launches a kernel, with clocks when it is among the first ones.

        Args:
            kernel: Returns a `CompiledKernel`, or an object with the same `asm`, `metadata` and `src`.
            name: Of its frames.
            launch: Its launcher: grid, stream, handle of the driver, and the rest.
        """
        if isinstance(launch, (_Undecided, TimedKernel)):
            note(f"{name} has no clocks in this session: those of another one are in it")
            return launch
        return _Undecided(kernel, name, launch, self)

    @staticmethod
    def rename(launch: object, name: str) -> None:
        """Another name for a kernel whose launcher `undecided` made; other launchers stay as they are."""
        if isinstance(launch, _Undecided):
            launch.kernel_name = name

    def timed(self, kernel: Callable[[], Any], name: str, launch: Callable[..., Any]) -> Callable[..., Any]:
        """What launches a kernel from now on."""
        with self._lock:
            if self._has_ended:
                return launch
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

    def _forget(self) -> None:
        """A forked child cannot use the kernels of its parent."""
        self._lock = Lock()
        self._timed = []

    def _made(self, kernel: Callable[[], Any], name: str, launch: Callable[..., Any]) -> TimedKernel | None:
        import triton

        from bragg.code.instrument.assembling import find_ptxas, target_of

        def load(symbol: str, cubin: bytes, shared_bytes: int) -> tuple[int, int]:
            driver = triton.runtime.driver.active
            module, function, *_ = driver.utils.load_binary(symbol, cubin, shared_bytes, driver.get_current_device())
            return module, function

        try:
            compiled = kernel()
            if overrides_machine_code(compiled):
                raise ValueError("the program overrides its machine code, TRITON_KERNEL_OVERRIDE")  # noqa: TRY301
            ptxas = find_ptxas(triton, target_of(compiled.asm["ptx"]), os.environ)
            made = TimedKernel(compiled, name, launch, load, ptxas, self._limits)
        except Exception as error:  # noqa: BLE001 - the program's kernel is launched as it is
            note(f"{name} has no clocks: {error}")
            return None
        self._timed.append(made)
        return made


class _Undecided:
    """Stands in place of a kernel's launcher until its first launch that counts."""

    def __init__(self, kernel: Callable[[], Any], name: str, launch: Callable[..., Any], chosen: Chosen) -> None:
        self.kernel_name = name
        self._kernel = kernel
        self._launch = launch
        self._chosen: Chosen | None = chosen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launch, name)

    def __call__(self, *arguments: Any) -> Any:
        """Launch."""
        if self._chosen is not None and not is_tuning():
            chosen, self._chosen = self._chosen, None
            self._launch = chosen.timed(self._kernel, self.kernel_name, self._launch)
        return self._launch(*arguments)
