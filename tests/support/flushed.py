"""What a program that is about to be killed can see of its capture.

Self-contained, like `fake_cuda`, for scripts that are recorded.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import bragg
from bragg.errors import BraggError

_PATIENCE_S = 60.0


def wait_until_flushed(name: str, metric: str = "host_count", least: int = 1) -> None:
    """Wait until a capture of this run, or in this directory, has at least so much of a metric at frames of a name."""
    directory = Path(os.environ.get("BRAGG_CAPTURE_DIR", "."))
    until = time.monotonic() + _PATIENCE_S
    while not any(_own(path, name, metric) >= least for path in directory.glob("*.part")):
        if time.monotonic() > until:
            raise TimeoutError(f"{metric} of {name} does not come to {least}")
        time.sleep(0.01)


def _own(capture: Path, name: str, metric: str) -> float:
    with suppress(BraggError):
        profile = bragg.load(capture)
        if metric in profile.metrics:
            names = [profile.tree.frames.name[frame] for frame in profile.tree.frame]
            return float(sum(own for own, found in zip(profile.own(metric), names, strict=True) if found == name))
    return 0.0
