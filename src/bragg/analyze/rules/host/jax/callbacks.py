"""Jitted functions of JAX that call back to Python in each step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding, moved, three_digits
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.paths import OPERATIONS, below, hottest_place, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import CALLBACK
from bragg.model import Confidence, Finding, Quantity

# XLA's operation that calls back: its copies to the host and back, and the wait for them, go with the call.
_OPERATION = re.compile(r"(?P<name>(?:pure|io|debug)_callback|debug_print)(?:\.\d+)?")
_SAVED = 0.9


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    operations = named(profile, _OPERATION.fullmatch)
    callbacks = named(profile, lambda name: name.startswith(CALLBACK))
    if not evidence.calls[callbacks].any():  # what prints is no function of the program
        callbacks = operations & (evidence.calls > 0)
    count = float(evidence.calls[callbacks].sum())
    if not count or count < WAITS.value * evidence.steps:
        return
    names = sorted({_name(tree.frames.name[frame]) for frame in tree.frame[callbacks].tolist()})
    took_ns = float(evidence.host_ns[below(profile, callbacks)].sum())
    around = below(profile, operations | callbacks)
    cause = Cause(
        "host-callbacks",
        f"a jitted function calls back to Python ({', '.join(names[:3])}), {counted(evidence, count, 'time')}, "
        f"{three_digits(took_ns / count / 1e3)} us each: the GPU waits for it and for copies to "
        "the host",
        "no pure_callback or jax.debug.print in the step: compute it in JAX, or return it and read it later",
        evidence.host_gain(around, _SAVED),
        Confidence.LIKELY,
        (
            Quantity(f"calls {evidence.step_word}", evidence.per_step(count)),
            Quantity("time of each call", took_ns / count, "ns"),
        ),
    )
    found = host_finding(evidence, callbacks, evidence.calls, cause)
    # The operation's line says what is called back, those of Python what called the jitted function.
    yield moved(found, hottest_place(profile, callbacks, evidence.calls, OPERATIONS))


def _name(frame: str) -> str:
    operation = _OPERATION.fullmatch(frame)
    return operation["name"] if operation else frame.removeprefix(CALLBACK)


RULE = Rule(
    _find,
    "jitted functions of JAX that call back to Python",
    (GPU_TIME, HOST_TIME),
    (WAITS,),
    "compute it in JAX, or return it from the jitted function",
    host_time=HostTime.CAUSE,
)
