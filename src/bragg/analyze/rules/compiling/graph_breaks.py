"""Functions that torch.compile compiles in parts, because it does not understand what is between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.compiled_regions import AFTER_BREAK, COMPILED_REGION, LOOKUP
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.table import BoolArray

# A part begins with an empty queue: half of what its launches wait would hide behind the part before it. All of it did
# in the one pair that was measured.
_AGAIN = 0.5
_OFTEN = 3
_PART = re.compile(rf"{COMPILED_REGION}(?P<place>.+) {AFTER_BREAK} \(\d+/\d+\)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    names = evidence.profile.tree.frames.name
    places = {match["place"] for name in names if (match := _PART.fullmatch(name))}
    parts = named(evidence.profile, _PART.fullmatch)
    count = float(evidence.calls[parts].sum())
    shown = ", ".join(sorted(places)[:3])
    what = (
        f"torch.compile breaks its graph before {shown}: {counted(evidence, count, 'part')} go "
        "through Python, and nothing is fused across them"
    )
    # A part that runs once belongs to the start of the program, unless it is compiled again and again, up to a limit.
    if count < WAITS.value * evidence.steps:
        n_versions = sum(_PART.fullmatch(name) is not None for name in names)
        if n_versions < _OFTEN * len(places) or not places:
            return
        what = f"torch.compile breaks its graph before {shown}, and compiles what follows {n_versions} times"
    cause = Cause(
        "graph-breaks",
        what,
        "TORCH_LOGS=graph_breaks says why; torch.compile(fullgraph=True) makes a break an error",
        _gain(evidence, parts),
        Confidence.PROVEN,
        (Quantity(f"parts {evidence.step_word}", evidence.per_step(count)),),
    )
    yield host_finding(evidence, parts, evidence.calls, cause)


def _gain(evidence: Evidence, parts: BoolArray) -> Gain | None:
    entered = parts | _lookups(evidence, parts)
    again, launched = evidence.host_gain(entered), evidence.host_gain(below(evidence.profile, parts) & ~entered, _AGAIN)
    return None if again is None or launched is None else evidence.gain(again.wall_ns + launched.wall_ns, again.limit)


def _lookups(evidence: Evidence, parts: BoolArray) -> BoolArray:
    """Where the code of a part is looked up, beside it: [n_nodes]."""
    parent = evidence.profile.tree.parent
    beside: BoolArray = np.isin(parent, parent[parts])
    return beside & named(evidence.profile, LOOKUP.__eq__)


RULE = Rule(
    _find,
    "graphs of torch.compile that break in each step",
    (OPERATORS,),
    (WAITS,),
    "move what it does not understand (print, item, data-dependent branches) out of the compiled function",
    host_time=HostTime.CAUSE,
)
