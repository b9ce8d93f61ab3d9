"""Findings of a check in the profile of the same program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bragg.formats.bragg import read, write
from bragg.model import Finding, FrameKind, Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.names import base_name

__all__ = ["carry_findings"]


def carry_findings(path: Path, found: Sequence[Finding]) -> None:
    """Write findings into a profile, in place of those of an earlier check.

    Each gets the call path where its kernel takes most time, if the kernel is in the profile.

    Raises:
        BadFile: The profile cannot be read or written.
    """
    profile = read(path)
    node = _busiest_nodes(profile)
    write(replace(profile, carried=[replace(each, node=node.get(each.kernel)) for each in found]), path)


def _busiest_nodes(profile: Profile) -> dict[str, NodeId]:
    """Where each kernel takes most GPU time, by its name without specialization."""
    tree = profile.tree
    time = profile.metrics["gpu_time"].own if "gpu_time" in profile.metrics else np.zeros(len(tree))
    nodes = np.flatnonzero(tree.frames.kind[tree.frame] == FrameKind.KERNEL)
    ascending = nodes[np.argsort(np.nan_to_num(time[nodes]), kind="stable")]
    return {base_name(tree.frames.name[tree.frame[node]]): NodeId(node) for node in ascending.tolist()}
