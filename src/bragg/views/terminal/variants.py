"""Kernels that differ only in how they were instantiated, and are called the same on screen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import CallTree, FrameTable, Profile
from bragg.model.table import Int32Array
from bragg.views.text.labels import SYMBOL_KINDS, Labels

__all__ = ["first_variants", "with_one_variant"]


def with_one_variant(profile: Profile) -> Profile:
    """The profile with one frame for all variants; nodes are not merged."""
    tree = profile.tree
    return replace(profile, tree=CallTree(tree.parent, first_variants(tree.frames)[tree.frame], tree.frames))


def first_variants(frames: FrameTable) -> Int32Array:
    """The frame that stands for each: the first variant of a kernel on its device, anything else itself; [n_frames]."""
    labels = Labels(frames)
    result = np.arange(len(frames), dtype=np.int32)
    first: dict[tuple[str, int, str], int] = {}
    for frame in np.flatnonzero(np.isin(frames.kind, SYMBOL_KINDS)).tolist():
        key = (labels.name(frame), int(frames.device[frame]), labels.place(frame))
        result[frame] = first.setdefault(key, frame)
    return result
