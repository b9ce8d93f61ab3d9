"""Facts of a profile that rules look at, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bragg.analyze.causes.bounding_gpus import BoundingGpus, bounding_gpus
from bragg.analyze.causes.callers import Callers
from bragg.analyze.causes.host_code import code_wait_ns
from bragg.analyze.causes.host_parts import HostParts, compiling, host_parts, special_parts
from bragg.analyze.causes.idle_sums import added_up_idle_ns, added_up_pauses, late_rows
from bragg.analyze.causes.output import Writer, writers
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import ProgramText
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.waits import critical_ns, host_floor_ns
from bragg.analyze.idle_paths import NOT_KNOWN, OTHERS, with_idle_paths
from bragg.analyze.imports import imports_apart
from bragg.analyze.wall.activity import Activity, activity_of
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.steady import during, steady_profile
from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.errors import UsageError
from bragg.grouping.hlo_names import CALLS
from bragg.grouping.regions import group_by_region
from bragg.model import FrameKind, Profile, SliceTable, TrackKind
from bragg.model.host_time import of_launching_thread
from bragg.model.meta.telemetry import Telemetry, telemetry_of
from bragg.model.table import BoolArray, FloatArray

if TYPE_CHECKING:
    from bragg.analyze.causes.hot_kernels import HotKernel
    from bragg.analyze.compiled_kernels import CompiledKernels
    from bragg.analyze.kernel_facts import KernelFacts

_UNKNOWN_STEPS = 20
_RARE = 0.02  # share of launches by paths that are taken less often than each step takes its own
_CAPTURED = "<captured_at>"  # above the kernels of a graph


class Facts:
    """Facts that rules look at; each is computed once, when the first rule asks for it.

    Args:
        profile: What was recorded, kept as `recorded`; in the attribute `profile` the host is the thread that launches
            the GPU's work, else the main one.
        regions: The same by regions, as `group_by_region` makes it; None: computed when it is asked for.
    """

    def __init__(self, profile: Profile, regions: Profile | None = None) -> None:
        self.recorded, self.profile = profile, of_launching_thread(profile)
        if regions is not None:
            self.regions = regions

    @cached_property
    def regions(self) -> Profile | None:
        """The regions of training steps; None where none were recorded."""
        try:
            return group_by_region(self.profile)
        except UsageError:
            return None

    @cached_property
    def parts(self) -> WallParts | None:
        """The parts of the wall time; None: not known."""
        return wall_parts(self.profile)

    @property
    def steady(self) -> Steady | None:
        """The steady state; None: it cannot be told from the rest."""
        return self.parts.steady if self.parts else None

    @cached_property
    def has_timeline(self) -> bool:
        """Whether it is known when work of a GPU ran."""
        kinds = self.profile.tracks.kind[self.profile.slices.track]
        return bool((kinds == TrackKind.GPU_STREAM).any())

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """What the hardware said; None: it was not asked."""
        return telemetry_of(self.profile.meta)

    @cached_property
    def part(self) -> Profile:
        """The steady state where the timeline tells it, else the whole run: nodes are those of `profile`."""
        found = steady_profile(self.profile, self.steady) if self.steady else None
        return found if found is not None and found.total("gpu_time") > 0 else self.profile

    @property
    def is_steady(self) -> bool:
        """Whether `part` is the steady state."""
        return self.part is not self.profile

    @property
    def of_steady(self) -> bool:
        """Whether times and counts are of the steady state: from the timeline, else estimated from those of the run."""
        return self.is_steady or (self.steady is not None and not self.has_timeline)

    @cached_property
    def wall_ns(self) -> float:
        """Wall time of `part`, of which gains are a share; 0: not known."""
        if self.of_steady and self.steady:
            return float(self.steady.duration_ns)
        run = self.profile.run
        if run.is_merged:
            return 0.0
        span_ns = self._activity.last_ns - self._activity.first_ns if self._activity else 0
        return float(run.gpu_span_ns or span_ns or run.duration_ns or 0)

    @cached_property
    def _activity(self) -> Activity | None:
        return activity_of(self.profile)

    @property
    def steps(self) -> int:
        """Steps to compare counts with: where they are not known, at least so many as would be these."""
        return self.n_steps or self._repetitions

    @cached_property
    def _repetitions(self) -> int:
        """How often the call paths that launch nearly everything were taken, except compilations."""
        counts = np.sort(self.gpu_count[(self.gpu_count > 0) & ~self.compiling])
        if not len(counts):
            return _UNKNOWN_STEPS
        launched = np.cumsum(counts)
        return max(int(counts[np.searchsorted(launched, _RARE * launched[-1])]), _UNKNOWN_STEPS)

    @cached_property
    def n_steps(self) -> int:
        """Steps in `part`; 0: not known."""
        return self.steady.n_steps if self.of_steady and self.steady else 0

    @cached_property
    def kernels(self) -> list[KernelFacts]:
        """The table of kernels over the whole run, the one with most GPU time first."""
        from bragg.analyze.kernel_facts import kernel_facts

        return kernel_facts(self.profile)

    @cached_property
    def compiled(self) -> CompiledKernels:
        """What compilers made of the kernels whose code the profile has."""
        from bragg.analyze.compiled_kernels import CompiledKernels  # 40 ms, which views do not need

        return CompiledKernels(self.profile)

    @property
    def is_for_target(self) -> bool:
        """Whether the kernels were compiled for a GPU that executed none of them."""
        return bool(self.profile.run.compiled_for_target) and not self.profile.measured("gpu_time")

    @cached_property
    def hot_kernels(self) -> list[HotKernel]:
        """The kernels whose time matters, the one with most first."""
        from bragg.analyze.causes.hot_kernels import hot_kernels, kernels_for_target

        if self.is_for_target:
            return kernels_for_target(self.profile, self.compiled)
        return hot_kernels(self.profile, self.gpu_ns, self.kernels, self.compiled, MUCH_GPU.value)

    @property
    def busy(self) -> float | None:
        """Share of `part` in which the busiest GPU worked, 0 to 1; None: not known."""
        return self.bounding.busy

    @cached_property
    def _busy(self) -> Mapping[int, float]:
        if self.steady and self.steady.busy:
            return self.steady.busy
        busy_ns: Mapping[int, float] = self.profile.run.gpu_busy_ns
        if not busy_ns and self._activity:
            busy_ns = {device: float(curve[1][-1]) for device, curve in self._activity.busy.items()}
        return {device: min(each / self.wall_ns, 1.0) for device, each in busy_ns.items()} if self.wall_ns else {}

    @cached_property
    def bounding(self) -> BoundingGpus:
        """The GPUs that decide how long the program takes: times of several are averages."""
        return bounding_gpus(self._busy, self.profile.tracks, self.n_devices)

    @cached_property
    def n_devices(self) -> int:
        """GPUs that worked, of all processes; at least 1."""
        tracks = self.profile.tracks
        streams = tracks.take(tracks.kind == TrackKind.GPU_STREAM)
        pairs = set(zip(streams.unique_process.tolist(), streams.device.tolist(), strict=True))
        return max(len(pairs) or len(self.profile.run.gpu_busy_ns), 1)

    @cached_property
    def gpu_ns(self) -> FloatArray:
        """Own GPU time of each node in `part`: [n_nodes]."""
        return self._own("gpu_time")

    @cached_property
    def bounding_ns(self) -> FloatArray:
        """Of `gpu_ns`, what GPUs do that bound the program: [n_nodes]."""
        return np.where(self.bounding.has(self.profile.tree), self.gpu_ns, 0.0)

    @cached_property
    def gpu_count(self) -> FloatArray:
        """Work of the GPU that each node started in `part`: [n_nodes]."""
        return self._own("gpu_count")

    def _own(self, name: str) -> FloatArray:
        metric = self.part.metrics.get(name)
        if metric is None:
            return np.zeros(len(self.profile.tree))
        own: FloatArray = np.nan_to_num(metric.own.astype(np.float64))
        return own if self.is_steady or not self.of_steady else own * self._shares_of_steady(name)

    def _shares_of_steady(self, name: str) -> FloatArray:
        """Part of each node's metric of the whole run that is in the steady state: [n_nodes], an estimate.

        Nothing is compiled there, and all else is as it is in the whole run.
        """
        shares: FloatArray = np.ones(len(self.profile.tree))
        metric, steady = self.profile.metrics.get(name), self.steady
        total = 0.0 if metric is None else float(np.nansum(metric.own[~self.compiling]))
        if steady is None or not total:
            return shares
        of_steady = steady.n_launches if name == "gpu_count" else sum(steady.busy.values()) * steady.duration_ns
        shares[:] = min(of_steady / total, 1.0)
        shares[self.compiling] = 0.0
        return shares

    @cached_property
    def critical_ns(self) -> FloatArray | None:
        """Part of `gpu_ns` that the program waits for, [n_nodes]: what is missing there hides behind the host.

        None: no timeline tells.
        """
        if not self.has_timeline:
            return None
        span = (self.steady.begins_ns, self.steady.ends_ns) if self.is_steady and self.steady else None
        return critical_ns(self.profile, span, self.bounding.ordinals) / self.bounding.count

    @cached_property
    def idle_ns(self) -> FloatArray | None:
        """Time in which a GPU waited for each node's own host code in `part`, [n_nodes]; None: no timeline tells."""
        return None if self._idle is None else self._idle[: len(self.profile.tree)]

    @property
    def idle_elsewhere_ns(self) -> tuple[float, float]:
        """Time in which a GPU waited for no code of the host in `part`: begun too late, and for reasons not known.

        The first holds pauses of a few microseconds and those between a launch and its start.
        """
        if self._idle is None:
            return 0.0, 0.0
        elsewhere = self._idle[len(self.profile.tree) :]
        unknown = float(elsewhere[NOT_KNOWN])
        return float(elsewhere.sum()) - unknown, unknown

    @property
    def idle_waited_ns(self) -> float:
        """Of the first of `idle_elsewhere_ns`, what launched work waited for another stream, a copy or an event."""
        return 0.0 if self._idle is None else float(self._idle[len(self.profile.tree) + len(OTHERS) :].sum())

    @cached_property
    def _idle(self) -> FloatArray | None:
        if self.has_timeline:
            found = self._idle_paths.own("gpu_idle_time").astype(np.float64)
        elif len(self.profile.idle):
            found = added_up_idle_ns(self.profile, self.steady, self.bounding.ordinals)
        else:
            return None
        return self.bounding.mean_wait(found, self.wall_ns)

    @cached_property
    def _idle_paths(self) -> Profile:
        """With idle time of `part` by call path; of a profile with a timeline."""
        steady = self.steady if self.is_steady else None
        return with_idle_paths(self.profile, steady=steady, devices=self.bounding.ordinals)

    @cached_property
    def _idle_paths_of_run(self) -> Profile:
        """The same of the whole run."""
        return with_idle_paths(self.profile, devices=self.bounding.ordinals) if self.is_steady else self._idle_paths

    @cached_property
    def slices(self) -> SliceTable:
        """The timeline of `part`, cut at its ends."""
        slices = self.profile.slices
        return during(slices, self.steady.begins_ns, self.steady.ends_ns) if self.is_steady and self.steady else slices

    @cached_property
    def on_host(self) -> BoolArray:
        """Which of `slices` are on threads of the host: [n_slices]."""
        found: BoolArray = (self.profile.tracks.kind == TrackKind.HOST_THREAD)[self.slices.track]
        return found

    @cached_property
    def on_gpu(self) -> BoolArray:
        """Which of `slices` are work on streams of GPUs: [n_slices]."""
        found: BoolArray = (self.profile.tracks.kind == TrackKind.GPU_STREAM)[self.slices.track]
        return found

    @cached_property
    def host_calls(self) -> SliceTable:
        """Slices of threads of the host without those inside of another one of the same node."""
        return self.slices.take(self.on_host).outermost()

    @cached_property
    def calls(self) -> FloatArray:
        """How often the host was in each node in `part`: [n_nodes]; without a timeline estimated from the whole run."""
        if self.has_timeline:
            nodes = self.host_calls.node
            return np.bincount(nodes, minlength=len(self.profile.tree)).astype(np.float64)
        counts = self.profile.metrics.get("host_count")
        if counts is None:
            return np.zeros(len(self.profile.tree))
        own: FloatArray = np.nan_to_num(counts.own.astype(np.float64))
        return own * self._shares_of_steady("gpu_count") if self.of_steady else own

    @cached_property
    def host_ns(self) -> FloatArray:
        """Own time of the host in each node in `part`, [n_nodes]; without a timeline estimated from the whole run."""
        if not self.has_timeline and self.of_steady and "host_time" in self.profile.metrics:
            own: FloatArray = np.nan_to_num(self.profile.own("host_time").astype(np.float64))
            return own * self._shares_of_steady("gpu_count")
        return self._own("host_time")

    @cached_property
    def recurring_host_ns(self) -> FloatArray:
        """`host_ns` without first calls, which load code for as long as the GPU waited; sums hold them: [n_nodes]."""
        return self.host_ns if self.has_timeline else np.maximum(self.host_ns - self.longest_wait_ns, 0.0)

    @cached_property
    def sampled_ns(self) -> FloatArray:
        """Time of the host in each node in `part` by samples, [n_nodes]; without a timeline as `host_ns`."""
        if not self.has_timeline:
            return self.host_ns
        is_sample = (self.profile.tracks.kind == TrackKind.SAMPLES)[self.slices.track]
        samples = self.slices.take(is_sample)
        return np.bincount(samples.node, samples.duration_ns, len(self.profile.tree)).astype(np.float64)

    @cached_property
    def host_floor_ns(self) -> float:
        """Part of `wall_ns` that operators take to launch, however fast the GPU is; 0: not known."""
        host, own_ns = self.host, self.recurring_host_ns
        waits = host.waiting & ~host.copying
        works = (self.profile.tree.kind == FrameKind.OPERATOR) & ~(waits | host.input | host.compilation)
        told = float(self.gpu_count.sum()), float(self.calls[waits].sum())
        found_ns = host_floor_ns(own_ns[works], self.calls[works], self.steps, *told)
        return min(found_ns, self.wall_ns) if self.n_devices == 1 else 0.0

    @cached_property
    def worked_ns(self) -> FloatArray:
        """Own time of the host in each node of a program without a GPU, apart from imports: [n_nodes]; else zeros."""
        if self.profile.measured("gpu_time") or "host_time" not in self.profile.metrics:
            return np.zeros(len(self.profile.tree))
        own: FloatArray = np.nan_to_num(imports_apart(self.profile)[0].own("host_time").astype(np.float64))
        return own

    @cached_property
    def compiling(self) -> BoolArray:
        """Nodes in or below what compiles or tunes: [n_nodes]."""
        return compiling(self.profile)

    @cached_property
    def is_launch(self) -> BoolArray:
        """Nodes that are a launch of one kernel, not of a graph: [n_nodes]. They are in timelines alone."""
        is_meant = named(self.profile, lambda name: "Launch" in name and "Graph" not in name)
        found: BoolArray = is_meant & (self.profile.tree.kind == FrameKind.GPU_API)
        return found

    @cached_property
    def is_jitted(self) -> bool:
        """Whether functions of JAX were called."""
        return any(name.startswith(CALLS) for name in self.profile.tree.frames.name)

    @cached_property
    def in_graph(self) -> BoolArray:
        """Nodes of work that CUDA graphs captured: [n_nodes]."""
        return below(self.profile, named(self.profile, _CAPTURED.__eq__))

    @property
    def has_graphs(self) -> bool:
        """Whether CUDA graphs ran."""
        return any(name == _CAPTURED or "GraphLaunch" in name for name in self.profile.tree.frames.name)

    @cached_property
    def n_launches(self) -> float | None:
        """Launches of single kernels in `part`; None: not known, because kernels of XLA's graphs look like others."""
        if self.has_timeline:
            return float(self.calls[self.is_launch].sum())
        if self.is_jitted:
            return None
        return float(self.gpu_count[(self.profile.tree.kind == FrameKind.KERNEL) & ~self.in_graph].sum())

    @cached_property
    def host(self) -> HostParts:
        """What the code of the host is for."""
        own_ns = None if self.idle_ns is None else self.idle_ns - self.code_wait_ns
        longest_ns = np.zeros(len(self.profile.tree)) if self.has_timeline else self.longest_wait_ns
        return host_parts(self.profile, self.writers, own_ns, longest_ns, self.calls, self.wall_ns)

    @cached_property
    def code_wait_ns(self) -> FloatArray:
        """Part of `idle_ns` in which the host ran code beside each node that launches nothing, for long: [n_nodes]."""
        tree = self.profile.tree
        if self.idle_ns is None:
            return np.zeros(len(tree))
        longest_ns = _longest_ns(self._idle_paths, len(tree)) if self.has_timeline else self.longest_wait_ns
        found = code_wait_ns(tree, self.idle_ns, self.recurring_host_ns, self.pauses, longest_ns)
        return np.where(special_parts(self.profile, self.writers), 0.0, found)

    @cached_property
    def callers(self) -> Callers:
        """Which lines call operators."""
        return Callers(self.profile)

    @cached_property
    def text(self) -> ProgramText:
        """The program's own text."""
        return ProgramText(self.profile)

    @cached_property
    def writers(self) -> list[Writer]:
        """The code of each kind that writes output."""
        return writers(self.profile)

    @cached_property
    def has_work(self) -> BoolArray:
        """Nodes with work of a GPU in or below them, in the whole run: [n_nodes]."""
        is_work = np.isin(self.profile.tree.kind, (FrameKind.KERNEL, FrameKind.MEMORY))
        found: BoolArray = self.profile.tree.sum_up(is_work.astype(np.int64)) > 0
        return found

    @cached_property
    def longest_wait_ns(self) -> FloatArray:
        """The longest time in the run in which a GPU waited for each node's own host code at once: [n_nodes]."""
        result: FloatArray = np.zeros(len(self.profile.tree))
        if self.has_timeline:
            return _longest_ns(self._idle_paths_of_run, len(result))
        late = late_rows(self.profile, self.bounding.ordinals)
        np.maximum.at(result, late.node, late.longest_ns)
        return result

    @cached_property
    def waits_of_run_ns(self) -> FloatArray:
        """Time of the whole run in which a GPU waited for each node's own host code: [n_nodes]."""
        n_nodes = len(self.profile.tree)
        if self.has_timeline:
            return self._idle_paths_of_run.own("gpu_idle_time")[:n_nodes].astype(np.float64)
        late = late_rows(self.profile, self.bounding.ordinals)
        return np.bincount(late.node, late.idle_ns, n_nodes).astype(np.float64)

    @cached_property
    def pauses(self) -> FloatArray:
        """How often a GPU waited for each node's own host code in `part`, [n_nodes]; 0: not known."""
        n_nodes = len(self.profile.tree)
        if self.has_timeline:
            return self._idle_paths.own("gpu_idle_count")[:n_nodes].astype(np.float64)
        return added_up_pauses(self.profile, self.steady, self.bounding.ordinals)

    def per_step(self, value: float) -> float:
        """A value of `part` for each step; without steps as it is."""
        return value / self.n_steps if self.n_steps else value

    @property
    def step_word(self) -> str:
        """What `per_step` is for: `a step`, or `in all` without steps."""
        return "a step" if self.n_steps else "in all"


def _longest_ns(idle: Profile, n_nodes: int) -> FloatArray:
    """The longest single wait for each node of a profile with idle paths: [n_nodes]."""
    return np.nan_to_num(idle.metrics["gpu_idle_longest"].own[:n_nodes].astype(np.float64))
