"""Programs that write within their steps: checkpoints, numbers for people, logs."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.host_steps import WAITS_OR_STEPS, HostCost, host_costs
from bragg.analyze.causes.output import PINNED
from bragg.analyze.causes.thresholds import OF_STEP, WRITING
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

# What is written less often, or beside the steps, is not gone.
_SAVED = 0.9


def _find(evidence: Evidence) -> Iterator[Finding]:
    idle_ns = evidence.idle_ns
    if idle_ns is None:
        for writer in evidence.writers:
            cost = HostCost(
                "output-in-steps", f"{writer.does} holds up the steps", writer.change.replace(PINNED, ""), _SAVED
            )
            yield from host_costs(evidence, writer.nodes, cost)
        return
    if not evidence.wall_ns:
        return
    for writer in evidence.writers:
        waited_ns = float(idle_ns[writer.nodes].sum())
        if waited_ns < WRITING.value * evidence.wall_ns or not waited_ns:
            continue
        each_ns = evidence.per_step(waited_ns)
        cause = Cause(
            "output-in-steps",
            f"the GPU waits {three_digits(each_ns / 1e6)} ms {evidence.step_word} for {writer.does}",
            writer.change,
            evidence.host_gain(writer.nodes, _SAVED),
            Confidence.LIKELY,
            (Quantity(f"wait {evidence.step_word}", each_ns, "ns"),),
        )
        yield host_finding(evidence, writer.nodes, idle_ns, cause)


RULE = Rule(
    _find,
    "checkpoints, prints and logs that steps wait for",
    (WAITS_OR_STEPS,),
    (WRITING, OF_STEP),
    "write less often, or from another thread",
    host_time=HostTime.CAUSE,
)
