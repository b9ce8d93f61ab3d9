"""What the host did with its time in a program that uses no GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import hottest_line
from bragg.analyze.imports import imports_apart
from bragg.model import FrameKind
from bragg.model.host_time import WAIT_TIME


@dataclass(frozen=True)
class HostShare:
    """What a part of the host's time went to.

    Attributes:
        name: `input`, `compilation`, `output`, `waiting`, `operators`, `interpreted kernels` or
            `Python and native code`.
        time_ns: How long.
        at: File and line of the program with most of it; empty: not known.
    """

    name: str
    time_ns: float
    at: str


def host_shares(evidence: Evidence) -> list[HostShare]:
    """The parts of the host's time apart from imports, which add up to it; empty: a GPU worked, or it is not known."""
    if evidence.profile.measured("gpu_time") or not evidence.profile.measured("host_time"):
        return []
    profile = imports_apart(evidence.profile)[0]
    own_ns = profile.own("host_time").astype(np.float64)
    waited_ns = profile.own(WAIT_TIME).astype(np.float64) if WAIT_TIME in profile.metrics else np.zeros(len(own_ns))
    host = evidence.host
    rest = ~(host.input | host.compilation | host.output)
    is_operator, is_kernel = (profile.tree.kind == kind for kind in (FrameKind.OPERATOR, FrameKind.KERNEL))
    parts = {
        "input": np.where(host.input, own_ns, 0.0),
        "compilation": np.where(host.compilation, own_ns, 0.0),
        "output": np.where(host.output, own_ns, 0.0),
        "waiting": np.where(rest & ~is_kernel, waited_ns, 0.0),
        "operators": np.where(rest & is_operator, own_ns - waited_ns, 0.0),
        "interpreted kernels": np.where(rest & is_kernel, own_ns, 0.0),
        "Python and native code": np.where(rest & ~(is_operator | is_kernel), own_ns - waited_ns, 0.0),
    }
    return [
        HostShare(name, float(time_ns.sum()), hottest_line(profile, time_ns))
        for name, time_ns in parts.items()
        if time_ns.sum() > 0
    ]
