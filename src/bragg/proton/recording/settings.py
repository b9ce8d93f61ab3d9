"""What a session records, from the arguments of `start`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bragg.proton.errors import InvalidArgument, ProfilerUnavailable
from bragg.proton.recording.mode_options import ModeOptions
from bragg.record.backends import choose_backend
from bragg.record.config import BackendName, Context, Data, RecordConfig

__all__ = ["INSIDE_PROFILER", "PROFILERS", "SAMPLING_PROFILER", "Settings", "default_profiler", "is_disabled"]

_Chosen = TypeVar("_Chosen")

# Proton's names of what measures, and ours; the last one is ours alone: scopes and their metrics, without a GPU.
_BACKENDS: dict[str, BackendName] = {"cupti": "cuda", "cpu": "cpu"}
_LATER = {
    "rocprofiler": "AMD GPUs are not recorded yet",
    "roctracer": "AMD GPUs are not recorded yet",
}
INSIDE_PROFILER = "instrumentation"
_AMD_DRIVER = "/dev/kfd"
SAMPLING_PROFILER = "cupti_pcsampling"  # up to 3.4, which had no modes
PROFILERS = ["cupti", "rocprofiler", "roctracer", "instrumentation", "cpu"]
_CONTEXTS: dict[str, Context] = {"shadow": "shadow", "python": "python"}
_DATA: dict[str, Data] = {"tree": "tree", "trace": "trace"}
_OFF = ("0", "false", "no", "off", "n")


@dataclass(frozen=True)
class Settings:
    """What a session records.

    Attributes:
        name: Path of its files without their suffix; empty or `-` is standard output.
        context: `shadow`, `python`.
        data: `tree`, `trace`.
        profiler: One of `PROFILERS`.
        mode: As the user gave it; empty is the default.
        options: What the mode asks for.
    """

    name: str
    context: Context
    data: Data
    profiler: str
    mode: str
    options: ModeOptions

    @classmethod
    def of(cls, name: str, context: str, data: str, profiler: str, mode: str) -> Settings:
        """Settings from arguments as Proton takes them.

        Raises:
            InvalidArgument: One is unknown.
            TypeError: One is not text.
            ProfilerUnavailable: One is known and not there.
        """
        path = os.fspath(name)
        for what, value in (("name", path), ("context", context), ("data", data), ("backend", profiler)):
            if not isinstance(value, str):
                raise TypeError(f"{what} is a text, not {value!r}")
        profiler = profiler.lower()
        if profiler == SAMPLING_PROFILER:
            profiler, mode = "cupti", mode or "pcsampling"
        return cls(
            path,
            _choice("context source", context.lower(), _CONTEXTS),
            _choice("data", data.lower(), _DATA),
            _profiler(profiler),
            mode,
            ModeOptions() if profiler == INSIDE_PROFILER else ModeOptions.parse(profiler, mode),
        )

    @property
    def flushed_format(self) -> str:
        """Format of the file that each phase gets when it is complete; empty: at the end."""
        return self.options.flushed_format

    @property
    def samples_instructions(self) -> bool:
        """Whether it shows where kernels spend their time, by source line."""
        return self.options.sampling != "off"

    @property
    def is_standard_output(self) -> bool:
        """Whether the result is printed."""
        return self.name in ("", "-")

    def config(self, output: str) -> RecordConfig:
        """What the recorder does for it.

        Args:
            output: Path beside which it may keep what is recorded.
        """
        return RecordConfig(
            backend=_BACKENDS[self.profiler],
            context=self.context,
            data=self.data,
            sample_interval_us=0,
            sampling=self.options.sampling,
            sample_period=self.options.sample_period,
            nvtx=_knob("enable_nvtx", "TRITON_ENABLE_NVTX", default=True),
            framework="off",  # Proton shows none.
            launch_metadata=False,  # `LaunchHook` asks, for the sessions that want it.
            output=output.replace("%", "%%"),
        )


def default_profiler() -> str:
    """What measures when the user does not say."""
    backend = choose_backend("auto", os.environ).name
    if backend == "cpu" and Path(_AMD_DRIVER).exists():
        warnings.warn(f"{_LATER['rocprofiler']}: scopes and their metrics alone are", RuntimeWarning, stacklevel=3)
    return next(profiler for profiler, name in _BACKENDS.items() if name == backend)


def is_disabled() -> bool:
    """Whether Triton's knob, or its variable, switches profiling off."""
    return _knob("disable", "TRITON_PROTON_DISABLE", default=False)


def _knob(name: str, variable: str, *, default: bool) -> bool:
    """A switch of `triton.knobs.proton`; its variable where Triton was not imported, or has no such knob."""
    knobs = getattr(sys.modules.get("triton.knobs"), "proton", None)
    value = getattr(knobs, name, None)
    if value is not None:
        return bool(value)
    text = os.environ.get(variable, "").lower()
    return text not in _OFF if text else default


def _choice(what: str, value: str, choices: Mapping[str, _Chosen]) -> _Chosen:
    if value not in choices:
        raise InvalidArgument(f"Unknown {what}: {value}", hint=f"Choose one of: {', '.join(choices)}")
    return choices[value]


def _profiler(name: str) -> str:
    if name in _LATER:
        raise ProfilerUnavailable(f"profiler {name!r}: {_LATER[name]}", hint="Use backend=None")
    if name not in (*_BACKENDS, INSIDE_PROFILER):
        known = ", ".join((*_BACKENDS, INSIDE_PROFILER))
        raise InvalidArgument(f"Unknown profiler: {name}", hint=f"Choose one of: {known}")
    return name
