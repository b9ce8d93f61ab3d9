"""One recording: a call tree with metrics, and what happened when."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bragg.errors import UsageError
from bragg.model.durations import MAX_BUCKET, DurationTable
from bragg.model.finding import Finding
from bragg.model.idle import IdleKind, IdleTable
from bragg.model.inputs import InputTable
from bragg.model.kernels.compiled import CompiledKernel
from bragg.model.kernels.configurations import KernelTable
from bragg.model.meta.run import Run
from bragg.model.metric import Metric, MetricKind
from bragg.model.table import Table
from bragg.model.trace import CounterTable, FlowTable, SliceTable, TrackKind, TrackTable, launch_flows
from bragg.model.tree import CallTree, FrameKind
from bragg.registry import ANALYSES, DATA_FRAMES, REPRESENTATIONS

TableName = Literal["nodes", "slices", "inputs"]


@dataclass(frozen=True, eq=False)
class Profile:
    """Everything bragg knows of one run, or of several that were merged.

    Attributes:
        meta: Facts about the run: program, machine, versions, dropped records. JSON values.
        tree: The calling contexts.
        metrics: By name, each over all nodes of `tree`.
        tracks: Lanes of the timeline; empty when only the tree was recorded.
        slices: What ran on them, ordered by track and start.
        counters: Values over time.
        kernels: Launch configurations.
        durations: How long the launches of each kernel took, as histograms.
        inputs: Which operators made the inputs of operators.
        idle: What GPUs waited for, as the recorder has added it up.
        carried: Findings that `bragg check --into` added; `findings()` has them, too.
        sources: Text of source files, by the name that frames carry.
    """

    meta: dict[str, Any]
    tree: CallTree
    metrics: dict[str, Metric] = field(default_factory=dict)
    tracks: TrackTable = field(default_factory=TrackTable.empty)
    slices: SliceTable = field(default_factory=SliceTable.empty)
    counters: CounterTable = field(default_factory=CounterTable.empty)
    kernels: KernelTable = field(default_factory=KernelTable.empty)
    durations: DurationTable = field(default_factory=DurationTable.empty)
    inputs: InputTable = field(default_factory=InputTable.empty)
    idle: IdleTable = field(default_factory=IdleTable.empty)
    carried: list[Finding] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    @cached_property
    def flows(self) -> FlowTable:
        """Arrows from launches to the device slices that they caused."""
        return launch_flows(self.slices, self.tracks)

    def fact(self, *path: str) -> Any:
        """A value within `meta`; None where there is none."""
        value: Any = self.meta
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def line_text(self, file: str, line: int) -> str:
        """A line of a file whose text the profile has, without its indentation; empty where it has none."""
        lines = self.sources.get(file, "").splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def metric(self, name: str) -> Metric:
        """A metric by name.

        Raises:
            UsageError: The profile has no such metric.
        """
        if name not in self.metrics:
            known = ", ".join(sorted(self.metrics)) or "none"
            raise UsageError(f"this profile has no metric {name!r}", hint=f"It has: {known}")
        return self.metrics[name]

    def own(self, name: str) -> NDArray[Any]:
        """Value of each node without its descendants: [n_nodes], int64 or float64, in the metric's unit.

        Raises:
            UsageError: The profile has no such metric.
        """
        return self.metric(name).own

    def inclusive(self, name: str) -> NDArray[Any]:
        """Value of each node with its descendants, int64 or float64 [n_nodes]; its own if the metric does not add up.

        What is not a finite number is left out of a sum.

        Raises:
            UsageError: The profile has no such metric.
        """
        if name not in self._inclusive:
            metric = self.metric(name)
            adds_up = metric.kind is MetricKind.INCLUSIVE
            self._inclusive[name] = self.tree.sum_up(_finite(metric.own)) if adds_up else metric.own
        return self._inclusive[name]

    def total(self, name: str) -> float:
        """An inclusive metric over the whole run, in its unit.

        Raises:
            UsageError: The profile has no such metric.
        """
        metric = self.metric(name)
        if metric.kind is MetricKind.INCLUSIVE and metric.own.dtype.kind == "i":
            return int(metric.own.sum())  # whole numbers are exact in any order: no walk over the tree
        return self.inclusive(name)[0].item()  # type: ignore[no-any-return]

    def measured(self, name: str) -> bool:
        """Whether there is an inclusive metric of this name, and any of it."""
        return name in self.metrics and self.total(name) > 0

    @property
    def main_metric(self) -> str:
        """The metric that answers where the time went: GPU time if there is any, else host time, else samples.

        Raises:
            UsageError: None of them was recorded.
        """
        for name in ("gpu_time", "host_time", "samples"):
            if self.measured(name):
                return name
        raise UsageError("this profile holds no time", hint="Record the program again: bragg run")

    def findings(self) -> list[Finding]:
        """Why the program was slow: what `bragg analyze` says, what gains most first."""
        return ANALYSES["findings"](self)  # type: ignore[no-any-return]

    def compiled_kernels(self) -> list[CompiledKernel]:
        """What compilers made of the kernels whose code the profile has, one row a specialization; no GPU is needed."""
        return list(ANALYSES["compiled_kernels"](self))

    def to_pandas(self, table: TableName = "nodes") -> Any:
        """One row a node, with its call path, place and metrics, or one a slice or input, as a `pandas.DataFrame`.

        Args:
            table: `nodes`: each metric with own values, and as `name (inc)` with what ran below where it adds up.
                `slices`: what ran when. `inputs`: which operators made the inputs of operators.

        Raises:
            UsageError: pandas is not installed, which the hint tells how to do, or there is no such table.
        """
        return DATA_FRAMES["pandas"](self, table)

    def to_polars(self, table: TableName = "nodes") -> Any:
        """The same table as a `polars.DataFrame`.

        Raises:
            UsageError: As for `to_pandas`.
        """
        return DATA_FRAMES["polars"](self, table)

    def __repr__(self) -> str:
        """One line, for consoles: arrays would fill pages."""
        metrics = ", ".join(self.metrics) or "none"
        return f"<Profile: {len(self.tree):,} call paths, {len(self.slices):,} slices, metrics {metrics}>"

    def _repr_html_(self) -> str:
        """How notebooks show it: the page of `bragg report` in a frame."""
        text: str = REPRESENTATIONS["html"](self)
        return text

    def check(self) -> None:
        """Check the laws between the tables.

        Raises:
            ValueError: A law is broken; the message names it.
        """
        self.tree.check()
        for metric in self.metrics.values():
            _require(len(metric.own) == len(self.tree), f"metric {metric.name} has a value for each node")
            _require(len(metric.has_value) == len(self.tree), f"metric {metric.name} says of each node if it has one")
        for table, name, limit in (
            (self.slices, "node", len(self.tree)),
            (self.slices, "track", len(self.tracks)),
            (self.counters, "track", len(self.tracks)),
            (self.kernels, "frame", len(self.tree.frames)),
            (self.inputs, "node", len(self.tree)),
            (self.inputs, "producer", len(self.tree)),
            (self.idle, "node", len(self.tree)),
            (self.idle, "kind", max(IdleKind) + 1),
            (self.durations, "frame", len(self.tree.frames)),
            (self.durations, "bucket", MAX_BUCKET + 1),
        ):
            _require(_within(table, name, limit), f"every {name} of {type(table).__name__} exists")
        _require(bool((self.tree.frames.kind <= max(FrameKind)).all()), "every frame is of a known kind")
        _require(
            bool(((self.tracks.kind >= min(TrackKind)) & (self.tracks.kind <= max(TrackKind))).all()),
            "every track is of a known kind",
        )
        start_ns, duration_ns = self.slices.start_ns, self.slices.duration_ns
        _require(bool(((start_ns >= 0) & (duration_ns >= 0)).all()), "no slice ends before it starts")
        _require(bool((start_ns <= np.iinfo(np.int64).max - duration_ns).all()), "every slice ends within int64")
        for finding in self.carried:
            _require(all(0 <= node < len(self.tree) for node in finding.nodes), "every node of a finding exists")

    @cached_property
    def run(self) -> Run:
        """What `meta` says of the run, typed."""
        return Run(self.meta)

    @cached_property
    def _inclusive(self) -> dict[str, NDArray[Any]]:
        return {}


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    known = np.isfinite(values)
    return values if known.all() else np.where(known, values, 0)


def _within(table: Table, name: str, limit: int) -> bool:
    values = getattr(table, name)
    return not len(values) or bool(values.min() >= 0 and values.max() < limit)


def _require(law_holds: bool, law: str) -> None:
    if not law_holds:
        raise ValueError(f"broken profile: {law}")
