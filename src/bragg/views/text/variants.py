"""Kernels that differ only in how they were instantiated, and are called the same on screen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Profile
from bragg.model.table import Int32Array, Int64Array
from bragg.views.text.labels import SYMBOL_KINDS, Labels


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


def rows_of_frames(frames: FrameTable, full_names: bool = False) -> Int64Array:
    """The frame that names the row of each, in tables of what ran, wherever it was called from: [n_frames].

    What has the same kind, name and file is one row; variants of a kernel are, unless full names are wanted; of sampled
    kernels each line is one.
    """
    variant = np.arange(len(frames)) if full_names else first_variants(frames)
    is_code = np.isin(frames.kind, (FrameKind.PYTHON, FrameKind.NATIVE, FrameKind.LINE)).tolist()
    first: dict[tuple[int, str, str, int], int] = {}
    rows = []
    for index, name_of in enumerate(variant.tolist()):
        kind = int(frames.kind[index])
        line = int(frames.line[index]) if kind == FrameKind.LINE else 0
        key = (kind, frames.name[name_of], frames.file[index] if is_code[index] else "", line)
        rows.append(first.setdefault(key, index))
    return np.array(rows, np.int64)
