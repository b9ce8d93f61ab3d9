"""Memory of a GPU that each step leaves allocated."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import three_digits
from bragg.analyze.causes.needs import MEMORY, STEADY
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.thresholds import MEMORY_GROWTH
from bragg.analyze.engine import Rule
from bragg.analyze.steady_memory import steady_memory
from bragg.model import Confidence, Finding, Place, Quantity, Severity
from bragg.model.meta.gpu_memory import AT_END, gpu_memory_of

_CHANGE = "keep no tensor longer than a step, such as a loss that is added up without .item() or .detach()"
_MB = 1e6


def _find(evidence: Evidence) -> Iterator[Finding]:
    told = gpu_memory_of(evidence.profile.meta)
    peaks = {device.ordinal: device.peak_bytes for device in told.devices} if told else {}
    for found in steady_memory(evidence.profile, evidence.steady):
        grown = found.growth_bytes or 0.0
        steps = evidence.steady.n_steps if evidence.steady else 0
        if not grown or grown * steps < MEMORY_GROWTH.value * peaks[found.device]:
            continue
        place = _holder(evidence, grown * steps, steps)
        yield Finding(
            "memory-grows",
            Severity.WARNING,
            f"memory of GPU {found.device} grows by {three_digits(grown / _MB)} MB a step",
            f"{_CHANGE}; bragg view -m {AT_END} shows who holds it",
            node=place.node,
            file=place.file,
            line=place.line,
            evidence=(
                Quantity("growth of a step", grown, "B"),
                Quantity("steps", steps),
                Quantity("peak", peaks[found.device], "B"),
            ),
            confidence=Confidence.LIKELY,
        )


def _holder(evidence: Evidence, grown_bytes: float, steps: int) -> Place:
    """The line that allocated most of what is still held at the end, of those that each step runs."""
    profile = evidence.profile
    if AT_END not in profile.metrics or "host_count" not in profile.metrics:
        return Place()
    held, recurs = profile.own(AT_END), profile.own("host_count") >= steps
    is_held = float(held[recurs].sum()) >= _MOST * grown_bytes
    return hottest_place(profile, recurs, held) if is_held else Place()


# What the program frees before it ends is held by nobody then.
_MOST = 0.5

RULE = Rule(_find, "memory of a GPU that each step leaves allocated", (MEMORY, STEADY), (MEMORY_GROWTH,), _CHANGE)
