"""A Triton kernel some of whose launches have clocks: its ladder, its trials and its readings."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass, replace
from threading import Lock

from bragg.code.instrument.assembling import assemble
from bragg.code.instrument.blocks import Kernel, read_kernel
from bragg.code.instrument.clocked import Clocked, Tools, clocked, clocked_in_part
from bragg.code.instrument.probes import Probe
from bragg.code.instrument.rewriting import CONTROL
from bragg.code.instrument.stored_types import stored_types
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, Store
from bragg.code.sass.disassembler import find_disassembler
from bragg.core import core
from bragg.model.kernels.inside import WITH_CLOCKS, WITH_PROBES
from bragg.record.inside.notes import note
from bragg.record.instrument.buffers import Buffers, Plan, plan
from bragg.record.instrument.captured_launch import CapturedLaunch, Stored
from bragg.record.instrument.compiled_kernel import partition_warps, ptxas_options, source_scopes
from bragg.record.instrument.driver import Driver
from bragg.record.instrument.guard import Comparison, Guard
from bragg.record.instrument.levels import Level, levels_of
from bragg.record.instrument.probed_launch import ProbedLaunch
from bragg.record.instrument.shared_room import shared_room
from bragg.record.instrument.summing import summed
from bragg.record.instrument.trial import PAIRS, Trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeAlias


STATE = "<clocks inside kernels>"
"""Under it stands what this copies and sets on the GPU."""

_Measured: TypeAlias = "Trial | ProbedLaunch | CapturedLaunch"
_WARP_THREADS = 32
_THREADS = re.compile(r"^\s*\.(?:req|max)ntid\s+(\d+)", re.MULTILINE)
_ASSEMBLE_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.002
_IN_GRAPHS = "its launches were recorded into CUDA graphs, while those before were not done"
_NOT_REPLAYED = "its launch with clocks was recorded into a CUDA graph that was not replayed"


@dataclass(frozen=True)
class Limits:
    """What timing may take.

    Attributes:
        budget: Share by which a launch may become longer.
        buffer_bytes: Memory of the GPU for each kernel's readings.
        has_timeline: What happened when is kept, too.
        probes: What one launch counts.
        in_shared: Readings are kept in shared memory until a block ends, where there is room.
    """

    budget: float
    buffer_bytes: int
    has_timeline: bool = False
    probes: Collection[Probe] = ()
    in_shared: bool = False


@dataclass
class _Attempt:
    """One level that is being tried.

    Attributes:
        function: The driver's handle of the kernel with clocks.
        trial: Its launches; None until the first one, which tells the grid.
        blocks_at_once: That fit on the GPU; 0 until the first launch.
    """

    level: Level
    clocked: Clocked
    compared: Comparison
    module: int
    function: int
    trial: Trial | None = None
    blocks_at_once: int = 0


class TimedKernel:
    """Stands in place of a kernel's launcher.

    Args:
        kernel: A `CompiledKernel` that was loaded.
        name: Of its frames.
        launch: Its launcher.
        load: Loads a cubin; as `load_binary` of Triton's driver.
        ptxas: Path of ptxas.
        limits: What timing may take.

    Raises:
        ValueError: Its PTX cannot be read or assembled.
        DriverError: There is no context.
    """

    def __init__(
        self,
        kernel: Any,
        name: str,
        launch: Callable[..., Any],
        load: Callable[[str, bytes, int], tuple[int, int]],
        ptxas: str,
        limits: Limits,
    ) -> None:
        self.name = name
        self._launch = launch
        self._load = load
        self._limits = limits
        options = ptxas_options(kernel.metadata)
        self._tools = Tools(ptxas, options, _ASSEMBLE_WITHIN_S, find_disassembler(os.environ))
        self._ctas = int(getattr(kernel.metadata, "num_ctas", 1))
        self._shared_bytes = int(kernel.metadata.shared)
        ptx = kernel.asm["ptx"]
        threads = _THREADS.search(ptx)
        if threads is None:
            raise ValueError("its PTX does not say how many warps a block has")
        self._warps = int(threads[1]) // _WARP_THREADS
        self._kernel: Kernel = read_kernel(ptx)
        self._first_warps = partition_warps(kernel.asm.get("ttgir", ""), self._warps)
        self._plain = assemble(ptxas, ptx, options, _ASSEMBLE_WITHIN_S)
        self._guard = Guard(self._plain, self._kernel.name, self._tools.disassembler)
        self._driver = Driver()
        self._lock = Lock()
        self._stores: dict[int, Store] = {}
        self._probed: ProbedLaunch | None = None
        self._levels = list(levels_of(source_scopes(kernel, self._kernel), has_clusters=self._ctas > 1))
        self._refused: list[dict[str, Any]] = []
        self._grid: tuple[int, int, int] | None = None
        self._buffers: Buffers | None = None
        self._accepted: tuple[_Attempt, dict[str, Any]] | None = None
        self._captured: CapturedLaunch | None = None
        self._before_capture: Stored | None = None
        self._is_told = False
        self._was_captured = False
        self._has_failed = False
        self._function = 0
        with self._driver.relaxed():
            self._attempt: _Attempt | None = self._next()
            if limits.probes:
                self._probed = self._with_probes(kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launch, name)

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: int, function: int, *rest: Any) -> Any:
        """Launch the kernel, with clocks when it is its turn."""
        grid = (grid_x, grid_y, grid_z)
        if self._is_settled(stream) or not self._lock.acquire(blocking=False):
            return self._launch(*grid, stream, function, *rest)
        try:
            self._function = function
            begun = self._begin(grid, stream)
            if begun is None:
                return self._launch(*grid, stream, function, *rest)
            measured, chosen = begun
            try:
                return self._launch(*grid, stream, chosen or function, *rest)
            finally:
                self._guarded(measured.end, stream)
        finally:
            self._lock.release()

    def result(self, wait_s: float, *, is_end: bool) -> dict[str, Any] | None:
        """What was measured, as a JSON object; None: nothing new.

        Args:
            wait_s: How long launches may still take.
            is_end: There will be no further ones.
        """
        if self._is_told:
            return None
        until_s = time.monotonic() + wait_s
        while (attempt := self._attempt) is not None and attempt.trial is not None:
            self._guarded(self._decide, is_end, is_end)
            attempt = self._attempt  # a launch on another thread may end it
            if attempt is None or attempt.trial is None or not attempt.trial.begun_pairs or time.monotonic() >= until_s:
                break
            time.sleep(_LOOK_EVERY_S)
        if not is_end and (self._accepted is None or self._captured is not None):
            return None
        self._is_told = True
        self._attempt = None  # what is launched from now on is nobody's
        counted = self._guarded(self._counts, until_s)
        if self._accepted is None and self._was_captured and not self._refused:
            self._refused.append({"why": _IN_GRAPHS})
        measured = self._guarded(self._readings, until_s) or {}
        return {"kernel": self.name, "refused": self._refused, "warps": self._warps, **(counted or {}), **measured}

    def _is_settled(self, stream: int) -> bool:
        """Whether this launch is not measured."""
        if self._is_told:
            return True
        if self._attempt is not None or (self._probed is not None and not self._probed.is_launched):
            return False
        may_capture = self._accepted is not None and self._captured is None and not self._has_failed
        return not (may_capture and self._guarded(self._driver.is_capturing, stream))

    def _begin(self, grid: tuple[int, int, int], stream: int) -> tuple[_Measured, int] | None:
        """Begin to measure a launch; None: it is not. The number is the handle of what is launched; 0: the kernel."""
        begun: tuple[_Measured, int] | None = self._guarded(self._begun, grid, stream)
        return begun

    def _begun(self, grid: tuple[int, int, int], stream: int) -> tuple[_Measured, int] | None:
        if self._driver.is_capturing(stream):
            self._was_captured = True
            with self._driver.relaxed():
                captured = self._capture(grid)
            return None if captured is None else (captured, captured.function)
        with self._driver.relaxed():
            if self._probed is not None and not self._probed.is_launched:
                is_probed = self._on_gpu(self._probed.begin, math.prod(grid) * self._ctas, self._ctas > 1)
                return (self._probed, self._probed.function) if is_probed else None
            if self._attempt is not None and self._attempt.trial is not None and self._attempt.trial.is_full:
                self._decide()
            attempt = self._attempt
            if attempt is None or grid != (self._grid or grid):
                return None
            if attempt.trial is None:
                self._on_gpu(self._prepare, attempt, grid)
            assert attempt.trial is not None
            if attempt.trial.is_full:
                return None
            is_timed = attempt.trial.begin(stream)
            return None if is_timed is None else (attempt.trial, attempt.function if is_timed else 0)

    def _prepare(self, attempt: _Attempt, grid: tuple[int, int, int]) -> None:
        if self._buffers is None:
            self._grid = grid
            blocks = math.prod(grid) * self._ctas
            self._buffers = Buffers(self._driver, plan(blocks, self._warps, self._limits.buffer_bytes))
        attempt.blocks_at_once = self._resident_blocks(attempt.function)
        control = self._buffers.control(self._plan(attempt))
        attempt.trial = Trial(self._driver, self._driver.write(self._driver.symbol(attempt.module, CONTROL), control))

    def _resident_blocks(self, function: int, more_bytes: int = 0) -> int:
        threads, shared_bytes = self._warps * _WARP_THREADS, self._shared_bytes + more_bytes
        return self._driver.resident_blocks(function, threads, shared_bytes)

    @staticmethod
    def _on_gpu(function: Callable[..., Any], *arguments: Any) -> Any:
        """Call what copies or sets memory of the GPU, which is not the program's doing."""
        core.enter_state(STATE)
        try:
            return function(*arguments)
        finally:
            core.exit_state()

    def _plan(self, attempt: _Attempt) -> Plan:
        assert self._buffers is not None
        return attempt.level.planned(self._buffers.plan, attempt.blocks_at_once, self._first_warps)

    def _decide(self, has_all: bool = False, is_last: bool = False) -> None:
        """Accept the level that was tried, or continue to the next one.

        Args:
            has_all: All of its launches were made, however few.
            is_last: No other level is tried.
        """
        attempt = self._attempt
        if attempt is None or attempt.trial is None:
            return
        pairs = attempt.trial.done_pairs
        if not pairs or pairs < (attempt.trial.begun_pairs if has_all else PAIRS):
            return
        plain_ns, timed_ns = attempt.trial.times_ns(pairs)
        told = {"level": attempt.level.name, "pairs": pairs, "plain_ns": plain_ns, "timed_ns": timed_ns}
        if timed_ns <= plain_ns * (1 + self._limits.budget):
            self._accepted, self._attempt = (attempt, told), None
            return
        self._refused.append({**told, "why": "cost"})
        self._attempt = None if is_last else self._next()

    def _capture(self, grid: tuple[int, int, int]) -> CapturedLaunch | None:
        """Give clocks to one launch that becomes part of a graph, once those before are done; None: to none.

        Its level is the one that was accepted. If no pair of launches was compared, it is the least one with stretches.
        """
        trial = self._attempt.trial if self._attempt is not None else None
        if self._captured is not None or (trial is not None and not trial.is_idle):
            return None
        self._decide(has_all=True)
        if self._accepted is not None:
            attempt: _Attempt | None = self._accepted[0]
        else:
            attempt = self._least()
        if attempt is None:
            return None
        module, function = self._loaded(attempt.clocked)
        blocks_at_once = self._resident_blocks(function)
        if self._accepted is not None:
            self._before_capture = self._on_gpu(self._stored)
        blocks = math.prod(grid) * self._ctas
        if self._buffers is None:
            self._buffers = self._on_gpu(Buffers, self._driver, plan(blocks, self._warps, self._limits.buffer_bytes))
        else:
            self._buffers = self._on_gpu(self._buffers.cleared, blocks)
        own = attempt.level.planned(self._buffers.plan, blocks_at_once, self._first_warps)
        self._captured = self._on_gpu(CapturedLaunch, self._driver, module, function, self._buffers, own)
        if self._accepted is None:
            told = {"level": attempt.level.name, "pairs": 0}
            self._accepted = (replace(attempt, blocks_at_once=blocks_at_once), told)
        self._attempt = None
        return self._captured

    def _least(self) -> _Attempt | None:
        """The last level that has stretches, or one below it."""
        if self._attempt is None:
            return None
        levels = [self._attempt.level, *self._levels]
        least = max((number for number, each in enumerate(levels) if not each.has_all_warps), default=0)
        self._levels = levels[least:]
        return self._attempt if least == 0 else self._next()

    def _next(self) -> _Attempt | None:
        """The next level whose machine code is that of the kernel, clocks apart."""
        while self._levels:
            level = self._levels.pop(0)
            try:
                make = clocked_in_part if level.block_shift else clocked
                made = make(self._kernel, level.selection, self._plain, self._tools, self._store(level))
            except ValueError as error:
                self._refused.append({"level": level.name, "why": str(error)})
                continue
            compared = self._guard.compared(made)
            if compared.refused:
                self._refused.append({"level": level.name, **compared.refused})
                continue
            return _Attempt(level, made, compared, *self._loaded(made))
        return None

    def _loaded(self, made: Clocked) -> tuple[int, int]:
        module, function = self._load(self._kernel.name, made.binary.cubin, self._shared_bytes)
        core.name_kernel(function, self.name + WITH_CLOCKS, self._kernel.name)
        return module, function

    def _store(self, level: Level) -> Store:
        """Where readings are kept: in shared memory, if that was asked for and as many blocks fit on the GPU."""
        if not self._limits.in_shared:
            return IN_GLOBAL_MEMORY
        warps = self._warps if level.has_all_warps else len(self._first_warps)
        if warps not in self._stores:
            _, plain = self._load(self._kernel.name, self._plain.cubin, self._shared_bytes)
            found = shared_room(warps, lambda more: self._resident_blocks(plain, more))
            if found is None:
                self._refused.append({"level": "shared memory", "why": f"it has no room for readings of {warps} warps"})
            self._stores[warps] = found or IN_GLOBAL_MEMORY
        return self._stores[warps]

    def _with_probes(self, kernel: Any) -> ProbedLaunch | None:
        def load(cubin: bytes) -> tuple[int, int]:
            module, function = self._load(self._kernel.name, cubin, self._shared_bytes)
            core.name_kernel(function, self.name + WITH_PROBES, self._kernel.name)
            return module, function

        try:
            types = stored_types(kernel.asm["ttgir"]) if Probe.VALUES in self._limits.probes else {}
            given = self._kernel, self._limits.probes, types, self._tools.ptxas, self._tools.options
            return ProbedLaunch(self._driver, *given, load)
        except (KeyError, ValueError) as error:
            self._refused.append({"level": "probes", "why": str(error)})
            return None

    def _counts(self, until_s: float) -> dict[str, Any]:
        if self._probed is None or not self._probed.is_launched:
            return {}
        while not self._probed.is_done and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)
        if not self._probed.is_done:
            return {}
        with self._driver.current():
            return self._on_gpu(self._probed.results)  # type: ignore[no-any-return]

    def _stored(self, until_s: float = 0.0) -> Stored:
        """What the launch stored that is shown: the last replay, or the last one outside of graphs."""
        if self._captured is not None:
            found = self._captured.last_replay(until_s) or self._before_capture
            if found is None:
                raise ValueError(_NOT_REPLAYED)
            return found
        assert self._accepted is not None
        assert self._buffers is not None
        own = self._plan(self._accepted[0])
        return Stored(*self._buffers.read(own), own)

    def _readings(self, until_s: float) -> dict[str, Any]:
        if self._accepted is None:
            return {}
        attempt, told = self._accepted
        with self._driver.current():
            stored = self._on_gpu(self._stored, until_s)
            plain_blocks = self._resident_blocks(self._function)
        resources = {
            "registers": [self._plain.registers, attempt.clocked.binary.registers],
            "stack_bytes": [self._plain.stack_bytes, attempt.clocked.binary.stack_bytes],
            "blocks_at_once": [plain_blocks, attempt.blocks_at_once],
            "shared_bytes": [self._shared_bytes, self._shared_bytes + attempt.clocked.instrumented.store.size_bytes],
            "loop_waits": attempt.compared.waits,
            "partitions": self._first_warps,
            "replays": stored.replays,
        }
        instrumented, has_timeline = attempt.clocked.instrumented, self._limits.has_timeline
        found = summed(stored.headers, stored.frames, instrumented, stored.plan, has_timeline=has_timeline)
        return {**told, **resources, **found}

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something; when it fails, this kernel is not measured any more."""
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 - the program's launches continue
            self._attempt = None
            self._has_failed = True
            if self._probed is not None and not self._probed.is_launched:
                self._probed = None
            self._refused.append({"why": str(error)})
            note(f"{self.name} has no clocks any more: {type(error).__name__}: {error}")
            return None
