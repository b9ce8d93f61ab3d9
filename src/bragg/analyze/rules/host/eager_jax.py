"""Steps of JAX that call many jitted functions, each with a dispatch of its own."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.needs import IDLE
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import IDLE_GPU, JITTED
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import CALLS
from bragg.model import Confidence, Finding, Quantity

__all__ = ["RULE", "called_often"]

_SAVED = 0.9
_N_NAMES = 3
_STAGED = "jit(stage)"  # of JAX itself (0.11), before another one: no function of the program's


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    if idle_ns is None or (evidence.busy or 1.0) > IDLE_GPU.value or not (often := called_often(evidence)):
        return
    main = max(often)[1]
    small = {name for _, name in often} - {main}
    nodes = below(profile, named(profile, small.__contains__))
    calls = float(evidence.calls[named(profile, small.__contains__)].sum())
    more = " ..." if len(small) > _N_NAMES else ""
    cause = Cause(
        "eager-jax",
        f"beside {main} each step calls {calls / evidence.steps:.0f} more jitted functions "
        f"({', '.join(sorted(small)[:_N_NAMES])}{more}), and the GPU waits for their dispatch",
        "move what makes the inputs of the step into the jitted step, or into one jitted function",
        evidence=(Quantity("jitted calls a step", calls / evidence.steps),),
        gain=evidence.host_gain(nodes, _SAVED),
        confidence=Confidence.LIKELY,
    )
    yield statement_finding(evidence, nodes, idle_ns, cause)


def called_often(evidence: Evidence) -> list[tuple[float, str]]:
    """Jitted functions that each step calls, if they are many: the GPU time and the name of each; else none."""
    profile, often = evidence.profile, []
    for name in dict.fromkeys(name for name in profile.tree.frames.name if name.startswith(CALLS)):
        nodes = named(profile, name.__eq__)
        if float(evidence.calls[nodes].sum()) >= 0.9 * evidence.steps:
            often.append((float(evidence.gpu_ns[below(profile, nodes)].sum()), name))
    return often if sum(name != _STAGED for _, name in often) >= JITTED.value else []


RULE = Rule(
    _find,
    "steps of JAX that consist of many jitted calls",
    (IDLE,),
    (JITTED, IDLE_GPU),
    "one jitted function a step",
    host_time=HostTime.CAUSE,
)
