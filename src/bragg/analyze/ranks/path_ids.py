"""Ids of call paths that are the same on every rank, whatever else the rank ran."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from bragg.model.ids import NodeId
from bragg.model.table import Int64Array
from bragg.model.tree import CallTree

_N_SHOWN = 3


def path_ids(tree: CallTree, labels: Sequence[str]) -> Int64Array:
    """64 bits for each node: [n_nodes]. Two of 2,000 paths share them in 1 of 10^13 jobs.

    Args:
        tree: The tree.
        labels: Texts of its frames.
    """
    texts = [text.encode() for text in labels]
    keys = [b""]
    for parent, frame in zip(tree.parent.tolist()[1:], tree.frame.tolist()[1:], strict=True):
        keys.append(blake2b(texts[frame], key=keys[parent], digest_size=8).digest())
    keys[0] = bytes(8)
    return np.frombuffer(b"".join(keys), np.int64)


def frame_ids(tree: CallTree, labels: Sequence[str]) -> Int64Array:
    """64 bits for the frame of each node: [n_nodes]."""
    digests = [blake2b(label.encode(), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(digests), np.int64)[tree.frame]


def path_label(tree: CallTree, labels: Sequence[str], node: NodeId) -> str:
    """The last frames of a path, files without their folders."""
    last = tree.frame[tree.path(node)[1:][-_N_SHOWN:]].tolist()
    folders = [f"{tree.frames.file[frame].rpartition('/')[0]}/" for frame in last]
    return " > ".join(labels[frame].removeprefix(folder) for frame, folder in zip(last, folders, strict=True))
