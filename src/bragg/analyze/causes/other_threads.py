"""What threads beside the main one ran in Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.paths import below, hottest_line, in_files
from bragg.analyze.imports import without_imports
from bragg.model import Profile
from bragg.model.host_time import THREAD_TIME
from bragg.model.library_files import is_library
from bragg.model.table import BoolArray
from bragg.model.tree import FrameKind

# Of a notebook: its kernel, and what that is made of.
_NOTEBOOK = re.compile(r"[/\\]site-packages[/\\](?:ipykernel[/\\]|zmq[/\\]utils[/\\]garbage\.py$)")


@dataclass(frozen=True)
class OtherThreads:
    """Threads of the program that samples found in functions of Python.

    Attributes:
        names: That the program gives them, the one that ran longest first; empty: not known, as in a notebook, whose
            kernel has threads, too.
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
    sampled_ns = without_imports(profile).own(THREAD_TIME).astype(np.float64)
    of_notebook = below(profile, in_files(profile, _NOTEBOOK))
    own_ns = np.where(of_notebook & ~below(profile, _in_program(profile)), 0.0, sampled_ns)
    if not own_ns.sum():
        return None
    names = () if sampled_ns[of_notebook].any() else tuple(profile.run.threads_ns)
    return OtherThreads(names, float(own_ns.sum()), hottest_line(profile, own_ns))


def _in_program(profile: Profile) -> BoolArray:
    tree = profile.tree
    is_own = np.array([bool(file) and not is_library(file) for file in tree.frames.file])
    found: BoolArray = is_own[tree.frame] & (tree.kind == FrameKind.PYTHON)
    return found
