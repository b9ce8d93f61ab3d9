"""The kernels whose time matters, each with what was compiled and how it was launched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.analyze.causes.thresholds import SHORT_LAUNCH
from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.analyze.kernel_facts import Configuration, KernelFacts
from bragg.model import FrameKind, Place, Profile
from bragg.model.ids import FrameId
from bragg.model.kernels.compiled import CompiledKernel
from bragg.model.kernels.names import base_name, specialization
from bragg.model.table import BoolArray, FloatArray
from bragg.model.transform import with_descendants

_CONSTANT = re.compile(r"(\w+)=(-?\d+)(?= )")
_SAMPLES = "num_samples"


@dataclass(frozen=True, eq=False)
class HotKernel:
    """A kernel over all call paths.

    Attributes:
        profile: Where it ran.
        name: Of its frames.
        nodes: Its nodes: [n_nodes].
        share: Of the GPU time, 0 to 1.
        mean_ns: GPU time of a launch; 0: no GPU executed it.
        roof_share: Part of its time that its flops and bytes need at least; None: not known.
        compiled: What was compiled; None: the profile does not have its code.
        launches: How it was launched, the most frequent first.
        device: Facts of its GPU.
        target: The GPU that it was compiled for, without one that executed it; empty: a GPU did.
    """

    profile: Profile
    name: str
    nodes: BoolArray
    share: float
    mean_ns: float
    roof_share: float | None
    compiled: CompiledKernel | None
    launches: tuple[Configuration, ...]
    device: Mapping[str, Any]
    target: str = ""

    @property
    def base(self) -> str:
        """Its name without the specialization."""
        return base_name(self.name)

    @property
    def constants(self) -> dict[str, int]:
        """Whole numbers that it was compiled with, by the keyword of its launch; of a name without them warps alone."""
        written = {name: int(number) for name, number in _CONSTANT.findall(specialization(self.name))}
        options = (
            {"num_warps": self.compiled.num_warps, "num_stages": self.compiled.num_stages} if self.compiled else {}
        )
        return written | {name: number for name, number in options.items() if number}

    @property
    def num_sms(self) -> int:
        """Multiprocessors of its GPU; 0: not known."""
        count = self.device.get("num_sms")
        return count if isinstance(count, int) else 0

    @property
    def is_short(self) -> bool:
        """Whether its launches are known to take so long as a launch takes that does nothing."""
        return not self.target and self.mean_ns < SHORT_LAUNCH.value

    @property
    def has_one_grid(self) -> bool:
        """Whether all its launches have one: sizes of the first one may be those of all."""
        return len({launch.grid for launch in self.launches}) == 1

    def share_of_lines(self, places: Sequence[Place]) -> tuple[float, bool]:
        """Part of its time that it is at some lines, 0 to 1, and whether samples tell it.

        Without samples, it is the part of the machine code that the lines became.
        """
        lines = {(place.file, place.line) for place in places}
        if sampled := self._sampled(lines):
            return sampled, True
        counted = self.compiled.instructions if self.compiled else None
        total = sum(each.count for each in counted or ())
        own = sum(each.count for each in counted or () if (each.place.file, each.place.line) in lines)
        return (own / total if total else 0.0), False

    def _sampled(self, lines: set[tuple[str, int]]) -> float:
        if _SAMPLES not in self.profile.metrics:
            return 0.0
        tree, samples = self.profile.tree, self.profile.own(_SAMPLES)
        below = with_descendants(tree, self.nodes)
        frames = tree.frames
        of_lines = np.array([place in lines for place in zip(frames.file, frames.line.tolist(), strict=True)], np.bool_)
        chosen = with_descendants(tree, below & of_lines[tree.frame])
        total = float(samples[below].sum())
        return float(samples[chosen].sum()) / total if total else 0.0


def hot_kernels(
    profile: Profile, gpu_ns: FloatArray, facts: Sequence[KernelFacts], compiled: CompiledKernels, least_share: float
) -> list[HotKernel]:
    """The kernels with at least a share of the GPU time, the one with most first.

    Args:
        profile: Where they ran.
        gpu_ns: GPU time of each node: [n_nodes].
        facts: The table of kernels.
        compiled: What was compiled.
        least_share: Of the GPU time, 0 to 1.
    """
    tree, frames = profile.tree, profile.tree.frames
    total_ns = float(gpu_ns.sum())
    of_frame = np.bincount(tree.frame, gpu_ns, len(frames)) * (frames.kind == FrameKind.KERNEL)
    by_name: dict[str, list[FrameId]] = {}
    for row in np.flatnonzero(of_frame > 0).tolist():
        by_name.setdefault(frames.name[row], []).append(row)
    table = {each.frame: each for each in facts}
    found = []
    for name, rows in by_name.items():
        share = float(of_frame[rows].sum()) / total_ns
        if share >= least_share:
            found.append(_hot(profile, name, rows, share, [table[row] for row in rows if row in table], compiled))
    return sorted(found, key=lambda each: -each.share)


def kernels_for_target(profile: Profile, compiled: CompiledKernels) -> list[HotKernel]:
    """Those that were compiled for a GPU that is not there, in the order of their first launches."""
    tree, target = profile.tree, profile.run.target
    found = []
    for name in compiled.names:
        rows = [row for row, frame in enumerate(tree.frames.name) if frame == name]
        nodes = (tree.kind == FrameKind.KERNEL) & np.isin(tree.frame, rows)
        kernel, launches = compiled.of(name), compiled.launches_for_target(name)
        device = {"arch": target.removeprefix("sm_")}
        found.append(HotKernel(profile, name, nodes, 0.0, 0.0, None, kernel, launches, device, target))
    return found


def _hot(
    profile: Profile, name: str, rows: list[FrameId], share: float, facts: list[KernelFacts], compiled: CompiledKernels
) -> HotKernel:
    time_ns, count = sum(each.time_ns for each in facts), sum(each.count for each in facts)
    roofs = [each.roof_ns for each in facts]
    roof_ns = None if None in roofs else sum(roof or 0 for roof in roofs)
    ordinal = int(profile.tree.frames.device[rows[0]])
    return HotKernel(
        profile=profile,
        name=name,
        nodes=np.isin(profile.tree.frame, rows),
        share=share,
        mean_ns=time_ns / count if count else 0.0,
        roof_share=roof_ns / time_ns if roof_ns and time_ns else None,
        compiled=compiled.of(name),
        launches=tuple(launch for each in facts for launch in each.configurations),
        device=next(iter(profile.run.records_of_device(ordinal)), {}),
    )
