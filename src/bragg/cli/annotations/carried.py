"""Findings of a check in the profile of the same program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from bragg.formats.bragg import read, write
from bragg.model import Finding, FrameKind, Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.names import base_name

_MOST_BYTES = 1 << 20


def carry_findings(path: Path, found: Sequence[Finding], launched: Sequence[str] = ()) -> str:
    """Write findings into a profile, in place of those of an earlier check.

    Args:
        path: The profile.
        found: The findings.
        launched: Names of the kernels that the checked program launched.

    Each gets the call path where its kernel takes most time, if the kernel is in the profile, and the text of its file,
    so that views show the line on another machine.

    Returns:
        Why the profile seems to be of another program; empty: it does not.

    Raises:
        BadFile: The profile cannot be read or written.
    """
    profile = read(path)
    node = _busiest_nodes(profile)
    carried = [replace(each, node=node.get(each.kernel), file=_known_as(profile, each.file)) for each in found]
    texts = _texts({each.file for each in carried} - profile.sources.keys())
    write(replace(profile, carried=carried, sources={**profile.sources, **texts}), path)
    if not launched or not node or node.keys() & set(launched):
        return ""
    return f"{path} has none of the kernels that were checked ({', '.join(launched)}): is it of another program?"


def _known_as(profile: Profile, file: str) -> str:
    """The name that the profile has for a file, which may be that from the root."""
    whole = os.path.normpath(Path.cwd() / file)
    return whole if file not in profile.sources and whole in profile.sources else file


def _texts(files: Iterable[str]) -> dict[str, str]:
    """Of those files that can be read and are no larger than code is."""
    found = {}
    for file in map(Path, filter(None, files)):
        with suppress(OSError, UnicodeDecodeError):
            if file.stat().st_size <= _MOST_BYTES:
                found[str(file)] = file.read_text(encoding="utf-8")
    return found


def _busiest_nodes(profile: Profile) -> dict[str, NodeId]:
    """Where each kernel takes most GPU time, by its name without specialization."""
    tree = profile.tree
    time = profile.metrics["gpu_time"].own if "gpu_time" in profile.metrics else np.zeros(len(tree))
    nodes = np.flatnonzero(tree.frames.kind[tree.frame] == FrameKind.KERNEL)
    ascending = nodes[np.argsort(np.nan_to_num(time[nodes]), kind="stable")]
    return {base_name(tree.frames.name[tree.frame[node]]): NodeId(node) for node in ascending.tolist()}
