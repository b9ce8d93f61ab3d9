"""Large arrays that XLA compiles into programs, because jitted functions read them instead of taking them."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import WITH_CONSTANTS
from bragg.analyze.engine import Rule
from bragg.grouping.hlo_names import CAPTURED, COMPILE
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.finding import percent_text

_CHANGE = (
    "pass them as arguments of the jitted function: jax.jit(f)(x, table); put them on the GPU once before, by "
    "jax.device_put"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, wall_ns = evidence.profile, evidence.profile.run.duration_ns
    times = profile.inclusive("host_time")
    for name, attributes in profile.run.attributes.items():
        told = [value for key, value in attributes.items() if key.startswith(CAPTURED)] if wall_ns else []
        compiled_ns = float(times[named(profile, name.__eq__)].sum()) if told else 0.0
        if not wall_ns or compiled_ns < WITH_CONSTANTS.value * wall_ns or not told:
            continue
        size, _, place = max(told, key=lambda each: int(each.partition(" ")[0])).partition(" ")
        file, _, line = place.rpartition(":")
        yield Finding(
            "captured-constants",
            Severity.WARNING,
            f"{name.removeprefix(COMPILE)} holds {int(size) / 1e6:,.0f} MB of arrays that its function reads but does "
            "not take: they are constants of each compilation. Compiling it is "
            f"{percent_text(compiled_ns / wall_ns)} of the run; how much of that they cost is not known",
            _CHANGE,
            file=file,
            line=int(line or 0),
            evidence=(Quantity("constants", int(size), "B"), Quantity("compiling", compiled_ns, "ns")),
            confidence=Confidence.HEURISTIC,
        )


RULE = Rule(
    _find, "large arrays that XLA compiles into programs as constants", (HOST_TIME,), (WITH_CONSTANTS,), _CHANGE
)
