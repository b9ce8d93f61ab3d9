"""GPU time that XLA spends on trying kernels, not on the program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.engine import Rule
from bragg.grouping.hlo_names import AUTOTUNE
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.finding import percent_text
from bragg.model.transform import with_descendants

_MUCH = 0.2


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    tree = profile.tree
    if "gpu_time" not in profile.metrics or AUTOTUNE not in tree.frames.name:
        return
    is_autotune = np.array([name == AUTOTUNE for name in tree.frames.name], np.bool_)[tree.frame]
    below = with_descendants(tree, is_autotune & (tree.kind == FrameKind.SCOPE))
    tuned_ns = int(profile.own("gpu_time")[below].sum())
    share = tuned_ns / max(profile.total("gpu_time"), 1)
    if share >= _MUCH:
        wall_ns = profile.run.duration_ns
        yield Finding(
            "autotuning",
            Severity.NOTE,
            f"{percent_text(share)} of the run's GPU time is XLA's autotuning, which is done once",
            hint=f"without it: bragg view --exclude '^{AUTOTUNE}$'",
            evidence=(Quantity("GPU time", tuned_ns, "ns"),),
            gain=Gain(tuned_ns, wall_ns, is_once=True) if wall_ns else None,
            confidence=Confidence.PROVEN,
        )


RULE = Rule(_find, "GPU time that XLA's autotuning takes", (GPU_TIME,))
