"""What compilations say of a program that JAX compiles while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.grouping.hlo_names import AUTOTUNE, COMPILE
from bragg.model import FrameKind, Profile
from bragg.model.transform import with_descendants

__all__ = ["compile_hints"]

# Fewer are the shapes of a first and a last batch.
_OFTEN = 3
_MUCH = 0.2
_N_HINTS = 2


@dataclass(frozen=True)
class _Compiled:
    """Compilations of one module: how many, and how long they took."""

    module: str
    count: int
    time_ns: int


def compile_hints(profile: Profile) -> list[str]:
    """Sentences for below a tree or table: what was compiled again and again, and GPU time that is autotuning's."""
    again = [each for each in _compilations(profile) if each.count >= _OFTEN]
    again.sort(key=lambda each: -each.time_ns)
    hints = [
        f"{each.module} was compiled {each.count} times, {each.time_ns / 1e9:.2g} s: shapes, types or static arguments "
        "of its calls differ, or it is made anew each time; which: JAX_EXPLAIN_CACHE_MISSES=1"
        for each in again[:_N_HINTS]
    ]
    return hints + _autotuning(profile)


def _compilations(profile: Profile) -> list[_Compiled]:
    if "host_count" not in profile.metrics or "host_time" not in profile.metrics:
        return []
    tree = profile.tree
    times, counts = profile.inclusive("host_time"), profile.own("host_count")
    found = []
    for frame, name in enumerate(tree.frames.name):
        if name.startswith(COMPILE):
            nodes = np.flatnonzero(tree.frame == frame)
            found.append(_Compiled(name.removeprefix(COMPILE), int(counts[nodes].sum()), int(times[nodes].sum())))
    return found


def _autotuning(profile: Profile) -> list[str]:
    if "gpu_time" not in profile.metrics:
        return []
    tree = profile.tree
    is_autotune = np.array([name == AUTOTUNE for name in tree.frames.name], np.bool_)[tree.frame]
    below = with_descendants(tree, is_autotune & (tree.kind == FrameKind.SCOPE))
    tuned_ns = int(profile.own("gpu_time")[below].sum())
    share = tuned_ns / max(profile.total("gpu_time"), 1)
    if share < _MUCH:
        return []
    return [f"{share * 100:.0f} % of the GPU time is XLA's autotuning; without it: bragg view --exclude '^{AUTOTUNE}$'"]
