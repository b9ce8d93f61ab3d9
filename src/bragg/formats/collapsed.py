"""Collapsed stacks: one line for each call path with a value of its own, as flame graph scripts read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.model import Profile


def write(profile: Profile, path: Path) -> None:
    """Write `outer;inner value` lines of the main metric, without the root.

    The format has no escapes: a semicolon in a name becomes a colon, a line break a space.

    Raises:
        UsageError: The profile holds no time.
        BadFile: The file cannot be written.
    """
    tree = profile.tree
    labels = [_plain(label) for label in tree.frames.labels()]
    own = profile.own(profile.main_metric)
    with new_file(path) as file:
        for node in np.flatnonzero(own).tolist():
            stack = ";".join(labels[frame] for frame in tree.frame[tree.path(node)[1:]].tolist())
            file.write(f"{stack or labels[0]} {int(own[node])}\n".encode())


def _plain(label: str) -> str:
    return " ".join(label.replace(";", ":").splitlines())


FORMAT = Format(
    ".collapsed",
    "collapsed stacks, for flame graph scripts",
    next_step="flamegraph.pl {file} > flame.svg",
    write=write,
)
