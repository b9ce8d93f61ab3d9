"""Whether the host waits for the GPU, in a sentence."""

from __future__ import annotations

import numpy as np

from bragg.model import FrameKind, Profile
from bragg.views.terminal.folding import library_of
from bragg.views.terminal.labels import Labels
from bragg.views.terminal.units import share_text, time_text

__all__ = ["waiting_line"]

# Less is no reason to look at it.
_LITTLE = 0.05


def waiting_line(profile: Profile) -> str:
    """How long the host waited for the GPU, and where most; empty when it hardly did, or that was not recorded."""
    if "sync_time" not in profile.metrics or profile.total("host_time") <= 0:
        return ""
    share = profile.total("sync_time") / profile.total("host_time")
    if share < _LITTLE:
        return ""
    where, most_ns = _hottest_place(profile)
    most = f", {share_text(most_ns / profile.total('sync_time'))} of that in {where}"
    return f"the host waited {time_text(profile.total('sync_time'))} for the GPU, {share_text(share)} of its time{most}"


def _hottest_place(profile: Profile) -> tuple[str, float]:
    """The code of the program that waits longest, whatever it calls to do so, and how long."""
    tree, own = profile.tree, profile.own("sync_time")
    is_own_code = np.array(
        [
            kind in (FrameKind.SCOPE, FrameKind.OPERATOR) or (kind == FrameKind.PYTHON and not library_of(file))
            for kind, file in zip(tree.frames.kind.tolist(), tree.frames.file, strict=True)
        ]
    )[tree.frame]
    place = np.full(len(tree), tree.frame[0])  # the frame of the innermost own code at or above each node
    for level in tree.levels[1:]:
        place[level] = np.where(is_own_code[level], tree.frame[level], place[tree.parent[level]])
    by_place = np.bincount(place, weights=own, minlength=len(tree.frames))
    hottest = int(by_place.argmax())
    return Labels(tree.frames).in_sentence(hottest), float(by_place[hottest])
