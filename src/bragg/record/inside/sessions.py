"""The recordings of a program that profiles itself: `bragg.start`, `bragg.stop`, `bragg.profile` and so on."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, overload

from bragg.core import core
from bragg.errors import BraggError, UsageError
from bragg.model import Profile
from bragg.record import variables
from bragg.record.config import BackendName, Context, Data, Framework, GpuApi, Graphs, RecordConfig, Sampling
from bragg.record.environment import claim_injection_variables
from bragg.record.hooks.torch import operators
from bragg.record.hooks.triton.no_driver import explain_missing_driver
from bragg.record.inside import autostart, metadata
from bragg.record.inside.notes import note
from bragg.record.inside.session import Session
from bragg.record.inside.threads import at_end_of_forked_thread
from bragg.record.output import Finisher, Loader

if TYPE_CHECKING:
    from typing_extensions import Unpack


_Function = TypeVar("_Function", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """What to record; meanings and defaults are those of `RecordConfig`."""

    backend: BackendName
    context: Context
    data: Data
    graphs: Graphs
    gpu_api: GpuApi
    framework: Framework
    modules: bool
    regions: str
    shapes: bool
    sampling: Sampling
    sample_period: int
    sample_budget: float
    counters: str
    counter_interval_us: int | None
    exact_kernels: str
    exact_metrics: str
    exact_launches: int
    telemetry_hz: float | None
    memory: bool
    nccl: bool
    no_idle: bool
    instrument: str
    instrument_budget: float
    instrument_buffer_mb: int
    instrument_shared: bool
    instrument_probes: str
    flush_interval_ms: int
    tree_limit_mb: int
    sample_interval_us: int | None
    nvtx: bool | None
    launch_metadata: bool
    kernel_code: bool
    rotate_s: float | None
    rotate_keep: int | None
    force: bool


class Sessions:
    """The sessions of this process. Several may record at once.

    Args:
        finisher: Turns a capture into a profile.
        loader: Reads a capture.
    """

    def __init__(self, finisher: Finisher, loader: Loader) -> None:
        self._finisher = finisher
        self._loader = loader
        self._sessions: list[Session] = []
        atexit.register(self._stop_all)

    def start(self, name: str = "%s.bragg", **options: Unpack[Options]) -> Session:
        """Start a recording.

        Start before the GPU is first used and before the first NVTX range: CUDA, ITT and NVTX find their tool by
        variables in `os.environ`, which this sets. `bragg run` takes care of both.

        Args:
            name: Name of the profile; the default is the program's. Tokens as in `RecordConfig.output`.
            options: See `RecordConfig`.

        Raises:
            UsageError: An option is out of its range.
            BackendUnavailable: The backend cannot measure here.
            RecordingFailed: The capture cannot be written.
        """
        return self._start(RecordConfig(output=name, **options), stacklevel=3)

    def stop(self, session: Session | None = None) -> Profile:
        """End a recording, the youngest one unless it is given, and write its profile.

        Raises:
            UsageError: None is running.
            NothingRecorded: Nothing was measured.
            RecordingFailed: The profile could not be written; the capture is kept, and named.
        """
        return (session or self._youngest()).stop()

    def activate(self, session: Session | None = None) -> None:
        """Resume a paused recording.

        Args:
            session: Which one; None: the session that was started last, or without one the recording of `bragg run`.

        Raises:
            UsageError: None is running.
        """
        (session or self._youngest_or_run()).activate()

    def deactivate(self, session: Session | None = None) -> None:
        """Pause a recording; it stays attached, so this is cheap.

        Args:
            session: Which one; None: as for `activate`.

        Raises:
            UsageError: None is running.
        """
        (session or self._youngest_or_run()).deactivate()

    @overload
    def profile(self, name: _Function) -> _Function: ...
    @overload
    def profile(self, name: str = ..., **options: Unpack[Options]) -> _GeneratorContextManager[Session]: ...
    def profile(self, name: str | Callable[..., Any] = "%s.bragg", **options: Unpack[Options]) -> Any:
        """Record a `with` block, or each call of a decorated function.

        Args:
            name: As in `start`; a function decorated without arguments gives its own name.
            options: See `RecordConfig`.

        Returns:
            A context manager that gives the `Session`, and decorates functions; or the decorated function.

        Raises:
            BraggError: As `start` and `stop`, when the block begins and ends; what the block itself raises wins.
        """
        if callable(name):
            return self._block(RecordConfig(output=name.__name__))(name)
        return self._block(RecordConfig(output=name, **options))

    @contextmanager
    def _block(self, config: RecordConfig) -> Iterator[Session]:
        session = self._start(config, stacklevel=4)
        try:
            yield session
        except BaseException:
            self._stop_quietly(session)
            raise
        if session.running:
            session.stop()

    def _start(self, config: RecordConfig, *, stacklevel: int) -> Session:
        late = "torch" in sys.modules and os.environ.get(variables.ITT_COLLECTOR) != core.library_path()
        for lost in claim_injection_variables(os.environ, config, core.library_path()):
            warnings.warn(lost, RuntimeWarning, stacklevel=stacklevel)
        session = Session(config, self._finisher, self._loader)
        self._sessions = [*self._running(), session]  # before a warning, which may be an error
        at_end_of_forked_thread(self._stop_all)
        if late and metadata.told(operators.TOLD).startswith("itt"):
            warnings.warn(operators.LATE, RuntimeWarning, stacklevel=stacklevel)
        return session

    def _running(self) -> list[Session]:
        return [session for session in self._sessions if session.running]

    def _youngest(self) -> Session:
        running = self._running()
        if not running:
            raise UsageError("no recording was started here", hint="Call bragg.start() first")
        return running[-1]

    def _youngest_or_run(self) -> Session | autostart.ProcessRecording:
        run = autostart.current()
        return run if run is not None and not self._running() else self._youngest()

    def _stop_all(self) -> None:
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            core.hurry()
        for session in reversed(self._running()):
            self._stop_quietly(session)
        explain_missing_driver(getattr(sys, "last_value", None))

    def _stop_quietly(self, session: Session) -> None:
        """Stop where an exception must not hide another one."""
        if session.running:
            try:
                session.stop()
            except BraggError as error:
                note(f"{error}. {error.hint}")
