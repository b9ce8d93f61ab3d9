"""Host time without what imports took: it says nothing of what a program does once it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.transform import with_descendants

__all__ = ["without_imports"]

_MACHINERY = "<frozen importlib"


def without_imports(profile: Profile) -> Profile:
    """The profile with `host_time` of what no `import` was waiting for; the same one where nothing was imported."""
    if "host_time" not in profile.metrics:
        return profile
    frames = profile.tree.frames
    rows = zip(frames.kind.tolist(), frames.file, strict=True)
    imports = np.array([kind == FrameKind.PYTHON and file.startswith(_MACHINERY) for kind, file in rows], np.bool_)
    if not imports.any():
        return profile
    is_import = with_descendants(profile.tree, imports[profile.tree.frame])
    own = np.where(is_import, 0, profile.own("host_time"))
    metric = Metric("host_time", "ns", MetricKind.INCLUSIVE, own)
    return replace(profile, metrics={**profile.metrics, "host_time": metric})
