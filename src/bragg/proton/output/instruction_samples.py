"""Instruction samples as Proton shows them: a frame for each source line, directly below the kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile
from bragg.model.kernels.names import base_name
from bragg.model.regroup import regroup

__all__ = ["with_lines_below_kernels", "with_proton_metrics"]

_SAMPLES = "num_samples"
_LEFT_OUT = "num_samples_apportioned"
# Where Proton's name is not the vendor's.
_NAMES = {"stalled_no_instructions": "stalled_no_instruction", "stalled_not_selected": "stalled_not_Selected"}
# A line has all of them in Proton's files, those that were not seen as 0.
_METRICS = (
    *(_SAMPLES, "num_stalled_samples", "stalled_branch_resolving", "stalled_no_instruction"),
    *(
        "stalled_short_scoreboard",
        "stalled_wait",
        "stalled_long_scoreboard",
        "stalled_tex_throttle",
        "stalled_barrier",
        "stalled_membar",
    ),
    *("stalled_imc_miss", "stalled_mio_throttle", "stalled_math_pipe_throttle", "stalled_drain"),
    *("stalled_lg_throttle", "stalled_not_Selected", "stalled_misc", "stalled_dispatch_stall", "stalled_sleeping"),
    "stalled_selected",
)


def with_lines_below_kernels(profile: Profile) -> Profile:
    """Each sampled instruction as the innermost line that it comes from; as its kernel, where that is not known."""
    tree = profile.tree
    frames = tree.frames
    folded = tree.kind == FrameKind.LINE
    parent, frame = tree.parent.copy(), tree.frame.copy()
    rows: dict[str, int] = {}  # of new frames, by label
    found: dict[int, tuple[int, int]] = {}  # by node: kernel, row of the line
    for node in np.flatnonzero(folded).tolist():
        above, own = int(parent[node]), int(frame[node])
        kernel, row = found.get(above, (above, -1))
        if frames.line[own] > 0:
            label = f"{frames.file[own]}:{frames.line[own]}@{base_name(frames.name[frame[kernel]])}"
            row = rows.setdefault(label, len(frames) + len(rows))
        elif row >= 0:
            parent[node], frame[node], folded[node] = kernel, row, False
        found[node] = kernel, row
    lined = CallTree(parent, frame, _with_labels(frames, list(rows)))
    return regroup(lined, folded=folded).apply(replace(profile, tree=lined))


def with_proton_metrics(profile: Profile) -> Profile:
    """The metrics of samples by Proton's names, all of them for each node that was sampled."""
    samples = profile.metrics.get(_SAMPLES)
    if samples is None:
        return profile
    renamed = {_NAMES.get(name, name): metric for name, metric in profile.metrics.items() if name != _LEFT_OUT}
    for name in [*_METRICS, *(name for name in renamed if name.startswith("stalled_") and name not in _METRICS)]:
        own = renamed[name].own if name in renamed else np.zeros_like(samples.own)
        renamed[name] = Metric(name, "1", MetricKind.INCLUSIVE, own, counted=samples.has_value)
    return replace(profile, metrics=renamed)


def _with_labels(frames: FrameTable, labels: list[str]) -> FrameTable:
    count = len(labels)
    return FrameTable(
        kind=np.append(frames.kind, np.full(count, FrameKind.LINE, np.uint8)),
        name=[*frames.name, *labels],
        file=[*frames.file, *[""] * count],
        line=np.append(frames.line, np.zeros(count, np.int32)),
        device=np.append(frames.device, np.full(count, -1, np.int32)),
    )
