"""The profilers that are compared. Each attaches, gives its kind of scope, and detaches completely.

Completely, because a process has one CUPTI subscriber slot and one pair of activity buffer callbacks, and because a
deactivated profiler that stays subscribed (as Proton's does) would make the program without it look slower than it is.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

import bragg
from bragg.core import core
from bragg.record.hooks.torch.operators import library_of
from cupti_floor import CuptiFloor


class Contender(Protocol):
    """One profiler."""

    def attach(self) -> None:
        """Start recording."""

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """The contender's own named region."""

    def detach(self) -> None:
        """Stop, write what was recorded, and give back the CUPTI slot."""


class Bragg:
    """bragg, on the GPU where there is one; what operators cost is measured by `operators.py`.

    Attributes:
        profile_path: Of the last recording.
    """

    scope = staticmethod(bragg.scope)

    def __init__(self, directory: Path, context: str, **options: str | bool | int) -> None:
        backend = "cuda" if torch.cuda.is_available() else "cpu"
        self.options: dict[str, Any] = {"backend": backend, "context": context, "framework": "off", **options}
        own = Path(tempfile.mkdtemp(dir=directory))  # others of this context may record into the same directory
        self.paths = (own / f"{number}.bragg" for number in itertools.count())
        self.profile_path = Path()

    def attach(self) -> None:
        """A session of its own each time."""
        self.profile_path = next(self.paths)
        self.session = bragg.start(str(self.profile_path), **self.options)

    def detach(self) -> None:
        """The last stop unsubscribes and turns the capture into a profile."""
        bragg.stop(self.session)


class Nothing:
    """No profiler."""

    def attach(self) -> None:
        """Nothing."""

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Nothing."""
        return nullcontext()

    def detach(self) -> None:
        """Nothing."""


class Observed:
    """Another contender, with an observer of PyTorch's operators that does nothing: what operators cost at least."""

    def __init__(self, inner: Contender) -> None:
        self.inner = inner
        self.scope = inner.scope

    def attach(self) -> None:
        """On this thread."""
        self.inner.attach()
        if refusal := core.begin_operator_trial(library_of(torch)):
            raise RuntimeError(refusal)

    def detach(self) -> None:
        """What it has seen is nobody's."""
        core.end_operator_trial("")
        self.inner.detach()


class Proton:
    """Triton's profiler."""

    def __init__(self, directory: Path, context: str, data: str = "tree", output_format: str = "hatchet") -> None:
        import triton.profiler as proton

        self.proton = proton
        self.scope = proton.scope
        self.options = {"backend": "cupti", "context": context, "data": data}
        self.output_format = output_format
        self.names = (str(directory / f"proton-{number}") for number in itertools.count())
        self.profile_path = Path()

    def attach(self) -> None:
        """A name of its own each time: starting a known name would go on with the old session."""
        name = next(self.names)
        self.profile_path = Path(f"{name}.{self.output_format}")
        self.session = self.proton.start(name, **self.options)

    def detach(self) -> None:
        """Finalizing unsubscribes and writes the file."""
        self.proton.finalize(self.session, self.output_format)


class TorchProfiler:
    """torch.profiler, with kernel records alone or with the host's operators too."""

    scope = staticmethod(torch.profiler.record_function)

    def __init__(self, directory: Path, *, host: bool) -> None:
        activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
        self.activities = activities if host else activities[:1]

    def attach(self) -> None:
        """A profile of its own each time."""
        self.profile = torch.profiler.profile(activities=self.activities)
        self.profile.start()

    def detach(self) -> None:
        """Collecting is part of stopping; nothing is written."""
        self.profile.stop()


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Where contenders write what nobody reads."""
    return tempfile.TemporaryDirectory(prefix="bragg-benchmark-")


CONTENDERS: dict[str, Callable[[Path], Contender]] = {
    "floor": CuptiFloor,
    "observed": lambda _: Observed(Nothing()),
    "floor_observed": lambda directory: Observed(CuptiFloor(directory)),
    "bragg_launches": partial(Bragg, context="shadow", no_idle=True, sample_interval_us=0),
    "bragg_paths": partial(Bragg, context="python", no_idle=True, sample_interval_us=0),
    "bragg_idle": partial(Bragg, context="python", sample_interval_us=0),
    "bragg_shadow": partial(Bragg, context="shadow"),
    "bragg_python": partial(Bragg, context="python"),
    "bragg_default": partial(Bragg, context="python", framework="auto"),
    "bragg_no_idle": partial(Bragg, context="python", framework="auto", no_idle=True),
    "bragg_telemetry": partial(Bragg, context="python", framework="auto", telemetry_hz=10),
    "bragg_gpu_sync": partial(Bragg, context="shadow", gpu_api="sync"),
    "bragg_gpu_api": partial(Bragg, context="shadow", gpu_api="all"),
    "bragg_native": partial(Bragg, context="native"),
    "bragg_trace": partial(Bragg, context="shadow", data="trace"),
    "proton_shadow": partial(Proton, context="shadow"),
    "proton_python": partial(Proton, context="python"),
    "torch_cuda": partial(TorchProfiler, host=False),
    "torch_cpu_cuda": partial(TorchProfiler, host=True),
}
