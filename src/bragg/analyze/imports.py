"""Host time without what imports took: it says nothing of what a program does once it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.host_time import THREAD_TIME, WAIT_TIME
from bragg.model.transform import with_descendants

LEAST_IMPORTS = 0.01
"""Of host time: less is not worth a sentence of a run."""
_MACHINERY = "<frozen importlib"


def imports_apart(profile: Profile) -> tuple[Profile, float]:
    """What a program without a GPU did apart from imports, and their host time, ns.

    Returns:
        The profile itself and 0 where a GPU worked, nothing was imported, or nothing else was done.
    """
    if "host_time" not in profile.metrics or profile.measured("gpu_time"):
        return profile, 0.0
    ran = without_imports(profile)
    imports_ns = float(profile.total("host_time") - ran.total("host_time"))
    return (ran, imports_ns) if 0 < imports_ns < profile.total("host_time") else (profile, 0.0)


def without_imports(profile: Profile) -> Profile:
    """The profile with host and waiting time of what no `import` was waiting for; the same one without imports."""
    if "host_time" not in profile.metrics:
        return profile
    frames = profile.tree.frames
    rows = zip(frames.kind.tolist(), frames.file, strict=True)
    imports = np.array([kind == FrameKind.PYTHON and file.startswith(_MACHINERY) for kind, file in rows], np.bool_)
    if not imports.any():
        return profile
    is_import = with_descendants(profile.tree, imports[profile.tree.frame])
    metrics = {
        name: Metric(name, "ns", MetricKind.INCLUSIVE, np.where(is_import, 0, profile.own(name)))
        for name in ("host_time", WAIT_TIME, THREAD_TIME)
        if name in profile.metrics
    }
    return replace(profile, metrics={**profile.metrics, **metrics})
