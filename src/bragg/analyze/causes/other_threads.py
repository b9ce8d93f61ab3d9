"""What threads beside the main one ran in Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.paths import hottest_line
from bragg.analyze.imports import without_imports
from bragg.model import Profile
from bragg.model.host_time import THREAD_TIME


@dataclass(frozen=True)
class OtherThreads:
    """Threads of the program that samples found in functions of Python.

    Attributes:
        names: That the program gives them, the one that ran longest first; empty: not known.
        time_ns: How long they ran on a core, all together, apart from imports.
        at: File and line of the program with most of it; empty: not known.
    """

    names: tuple[str, ...]
    time_ns: float
    at: str


def other_threads(profile: Profile) -> OtherThreads | None:
    """What is known of them; None: none was found running."""
    if THREAD_TIME not in profile.metrics:
        return None
    own_ns = without_imports(profile).own(THREAD_TIME).astype(np.float64)
    if not own_ns.sum():
        return None
    return OtherThreads(tuple(profile.run.threads_ns), float(own_ns.sum()), hottest_line(profile, own_ns))
