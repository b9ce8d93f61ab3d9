"""What a profile says about its run, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from bragg.analyze.comparing.disturbance import starved_share
from bragg.analyze.time_slices import time_slices
from bragg.model import DurationTable, Profile
from bragg.model.finding import percent_text
from bragg.model.meta.completeness import Completeness, completeness_of
from bragg.model.meta.overhead import Overhead, overhead_of
from bragg.model.meta.run import Run
from bragg.views.text.counter_facts import counter_warnings
from bragg.views.text.exact_facts import exact_lines
from bragg.views.text.memory_facts import memory_warnings
from bragg.views.text.nccl_facts import nccl_warnings
from bragg.views.text.sampling_facts import sampling_warnings
from bragg.views.text.style import printable
from bragg.views.text.telemetry_facts import telemetry_warnings
from bragg.views.text.units import count_text, share_text, signal_name, time_text

_MAX_NAMES = 3
_TELLABLE_SLOWDOWN = 3.0  # of more, too little time is left to divide by
_LITTLE_WORK_NS = 250_000_000  # of which the start of the recorder is a large share


@dataclass(frozen=True, eq=False)
class RunFacts:
    """Facts about a run; each is empty or None where the meta data does not tell, and each text is printable.

    Attributes:
        meta: `Profile.meta`.
        durations: How long launches took; None: not asked.
    """

    meta: Mapping[str, Any]
    durations: DurationTable | None = None

    @classmethod
    def of(cls, profile: Profile) -> RunFacts:
        """Those of a profile."""
        return cls(profile.meta, profile.durations)

    @cached_property
    def run(self) -> Run:
        """The same facts, typed."""
        return Run(self.meta)

    @property
    def command(self) -> str:
        """The command line, with the program's name instead of its path."""
        words = self.run.command
        return printable(shlex.join([PurePath(words[0]).name, *words[1:]])) if words else ""

    @property
    def backend(self) -> str:
        """What measured."""
        return printable(self.run.backend)

    @cached_property
    def overhead(self) -> Overhead | None:
        """How much longer the program took because it was recorded."""
        return overhead_of(self.meta)

    @property
    def overhead_text(self) -> str:
        """The same in words; empty when not known.

        `estimated overhead 1.8 %`, `estimated overhead 1.8 % without instruction samples`, `overhead at least 1.8 %`,
        of little work `estimated overhead 18 ms`.
        """
        if self.overhead is None:
            return ""
        is_little = self.overhead.work_ns < _LITTLE_WORK_NS
        cost = time_text(self.overhead.added_ns) if is_little else share_text(self.overhead.slowdown)
        if self.overhead.slowdown > _TELLABLE_SLOWDOWN and not is_little:
            return f"estimated overhead above {percent_text(_TELLABLE_SLOWDOWN)}"
        if self.overhead.is_at_least:
            return f"overhead at least {cost}"
        left_out = " and ".join(self.overhead.left_out)
        return f"estimated overhead {cost}" + (f" without {left_out}" if left_out else "")

    @property
    def recorder(self) -> str:
        """The other program that recorded the run; empty when bragg did."""
        return printable(self.run.recorder)

    @cached_property
    def completeness(self) -> Completeness:
        """What the sums lack, in texts of the file."""
        return completeness_of(self.meta)

    @property
    def cost(self) -> str:
        """Completeness, overhead and how the program failed: `complete, estimated overhead 1.8 %`; empty: not known."""
        word = printable(self.completeness.word) if self.completeness.is_known else ""
        return ", ".join(filter(None, [word, self.overhead_text, self.failure]))

    @property
    def failure(self) -> str:
        """How the program ended if it failed: `until SIGINT`, `exit code 2 of the program`."""
        code = self.run.exit_code or 0
        return f"until {signal_name(-code)}" if code < 0 else f"exit code {code} of the program" if code else ""

    @property
    def gpu_failure(self) -> str:
        """Why the GPU could not be measured; empty when it was, or was not tried."""
        return printable(self.run.cuda.failure)

    @property
    def devices(self) -> list[str]:
        """Names of the GPUs, or their architecture."""
        return [_device_name(device) for device in self.run.devices if {"name", "arch"} & device.keys()]

    @property
    def machine(self) -> str:
        """Host and GPUs: `gpubox, 2 x NVIDIA H200`."""
        names = dict.fromkeys(self.devices)
        gpus = [name if self.devices.count(name) == 1 else f"{self.devices.count(name)} x {name}" for name in names]
        return ", ".join(filter(None, [printable(self.run.host), *gpus]))

    @property
    def versions(self) -> str:
        """Python, frameworks, CUDA and CUPTI."""
        found = dict(self.run.versions)
        if (driver := self.run.cuda.driver_version) is not None:
            found["CUDA driver"] = f"{driver // 1000}.{driver % 1000 // 10}"
        if (cupti := self.run.cuda.cupti_version) is not None:
            # Before 13.0 the version was a plain count.
            found["CUPTI"] = f"{cupti // 10_000}.{cupti // 100 % 100}" if cupti >= 100_000 else f"API {cupti}"
        return ", ".join(printable(f"{name} {version}") for name, version in found.items())

    @property
    def gpu_busy(self) -> dict[str, float]:
        """By device, the share of the time from the first to the last GPU work in which it worked."""
        span_ns = self.run.gpu_span_ns
        return {str(device): busy_ns / span_ns for device, busy_ns in self.run.gpu_busy_ns.items()} if span_ns else {}

    @property
    def kernel_failure(self) -> str:
        """What ended a kernel, and the command that finds it in one of Triton; empty: nothing did."""
        if not self.run.kernel_error:
            return ""
        said = printable(f"a kernel ended with an error: {self.run.kernel_error}")
        if "triton" not in self.run.versions:
            return said
        words = self.run.command[1:]
        is_python = bool(words) and (words[0] == "-m" or not words[0].startswith("-"))
        program = printable(shlex.join(words)) if is_python else "PROGRAM"
        return f"{said}; if it is one of Triton, this finds where and why: bragg check {program}"

    @property
    def starved_share(self) -> float:
        """For how much of its time the main thread was ready to run, and had no core, 0 to 1; 0: not for long."""
        return starved_share(self.run)

    @property
    def starved(self) -> str:
        """That the main thread was ready to run, and had no core; empty: not for long."""
        if not self.starved_share:
            return ""
        ran_ns, ready_ns = self.run.main_thread_ns or (0, 0)
        ran, ready = time_text(ran_ns), time_text(ready_ns)
        what = f"the main thread ran {ran}, and waited another {ready} for a core"
        return f"{what}: other programs, or its own threads (OMP_NUM_THREADS), make times longer"

    @property
    def starved_clause(self) -> str:
        """The same in a few words."""
        _, ready_ns = self.run.main_thread_ns or (0, 0)
        return f"the main thread waited {time_text(ready_ns)} for a core" if self.starved_share else ""

    @property
    def sliced(self) -> str:
        """That a GPU worked for another program in between; empty: launches do not show it."""
        found = time_slices(self.durations) if self.durations is not None else None
        if found is None:
            return ""
        longer = f"{found.launches:,} launches took {time_text(found.slice_ns)} longer than others of their kernel"
        share = f"{share_text(found.share)} of the GPU time of these kernels"
        return f"another program shared the GPU: {longer}, {share}; medians are free of it (p50 of bragg view --flat)"

    def disturbances(self) -> Iterator[str]:
        """That other work on the machine made times longer."""
        return filter(None, [self.starved, self.sliced])

    def cautions(self) -> Iterator[str]:
        """That the machine was busy with other work, and the warnings."""
        yield from self.disturbances()
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """What of the recording the reader must know before trusting the numbers; one line each."""
        return map(printable, self._warnings())

    def _warnings(self) -> Iterator[str]:
        if self.kernel_failure:
            yield self.kernel_failure
        yield from self.completeness.warnings()
        if n_launches := self.run.interpreted_launches:
            launches = count_text(n_launches, "launch", "launches")
            yield f"Triton kernels ran in bragg's interpreter on the CPU ({launches}): not times of a GPU"
        if left_out := self.run.region_spans_left_out:
            yield f"{left_out:,} more steps and regions are not in the timeline"
        yield from sampling_warnings(self.meta)
        yield from counter_warnings(self.meta)
        yield from exact_lines(self.meta)
        yield from telemetry_warnings(self.meta)
        yield from memory_warnings(self.meta)
        yield from nccl_warnings(self.meta)
        if missing := self.run.incomplete_code:
            names = ", ".join([*list(missing)[:_MAX_NAMES], *["…"] * (len(missing) > _MAX_NAMES)])
            why = next(iter(missing.values()))
            yield f"code of {count_text(len(missing), 'kernel')} is not complete ({names}): {why}"

    def duration_text(self) -> str:
        """The duration with its unit, of a run that continues `17.2 s so far`; empty when unknown."""
        if self.run.duration_ns is None:
            return ""
        return f"{time_text(self.run.duration_ns)}{' so far' if self.run.is_running else ''}"


def _device_name(device: Mapping[str, Any]) -> str:
    arch = str(device.get("arch"))
    return printable(str(device.get("name") or (f"sm_{arch}" if arch.isdecimal() else arch)))
