"""Steps of JAX that call many jitted functions, each with a dispatch of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.host_steps import HostCost, host_costs, host_steps
from bragg.analyze.causes.host_work import NO_GPU, host_work
from bragg.analyze.causes.jitted_calls import is_of_program
from bragg.analyze.causes.needs import HOST_TIME, TRACE, Need
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import IDLE_GPU, JITTED, OF_STEP
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import CALLS
from bragg.grouping.regions import step_function
from bragg.model import Confidence, Finding, Quantity
from bragg.model.table import BoolArray

_SAVED = 0.9
_N_NAMES = 3
_CHANGE = "move what makes the inputs of the step into the jitted step, or into one jitted function"
_JAX = re.compile(r"[/\\]jax[/\\]")
_JIT = "jax.jit around the function that calls them, as jax.jit(jax.grad(loss)), or around the whole turn"
_WAITS_OR_HOST_TIME = Need(
    "what GPUs waited for, or host time without a GPU",
    TRACE,
    lambda evidence: evidence.idle_ns is not None or (NO_GPU.is_met(evidence) and HOST_TIME.is_met(evidence)),
)
# Calls without a step, and how long one takes at most, without code of JAX around it: longer ones compute.
_MANY, _SHORT_NS, _LEAST = 500, 3e5, 0.1
_STAGED = "jit(stage)"  # of JAX itself (0.11), before another one: no function of the program's


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    if idle_ns is None:
        yield from _without_gpu(evidence)
        return
    if (evidence.busy or 1.0) > IDLE_GPU.value or not (often := called_often(evidence)):
        return
    main = max(often)[1]
    small = {name for _, name in often} - {main}
    nodes = below(profile, named(profile, small.__contains__))
    calls = float(evidence.calls[named(profile, small.__contains__)].sum())
    cause = Cause(
        "eager-jax",
        f"{_beside(main, small, calls / evidence.steps)}, and the GPU waits for their dispatch",
        _CHANGE,
        evidence=(Quantity("jitted calls a step", calls / evidence.steps),),
        gain=evidence.host_gain(nodes, _SAVED),
        confidence=Confidence.LIKELY,
    )
    yield statement_finding(evidence, nodes, idle_ns, cause)


def _beside(main: str, small: set[str], calls: float) -> str:
    more = " ..." if len(small) > _N_NAMES else ""
    names = ", ".join(sorted(small)[:_N_NAMES])
    return f"beside {main} each step calls {calls:.0f} more jitted functions ({names}{more})"


def _without_gpu(evidence: Evidence) -> Iterator[Finding]:
    profile, tree, steps = evidence.profile, evidence.profile.tree, host_steps(evidence)
    main = step_function(profile.meta)
    if steps is None:
        yield from _without_steps(evidence)
        return
    n_steps = steps.made
    jitted = {name for name in tree.frames.name if name.startswith(CALLS)}
    often = {name for name in jitted if float(evidence.calls[named(profile, name.__eq__)].sum()) >= 0.9 * n_steps}
    own = {name for name in often if is_of_program(evidence, name)} | {main}
    small = {name for name in often - own if _is_short(evidence, named(profile, name.__eq__))}
    if main not in often or len(small - {_STAGED}) + 1 < JITTED.value:
        return
    is_small, is_own = named(profile, small.__contains__), named(profile, own.__contains__)
    # What is below a call traces and compiles, once.
    dispatches = (tree.sum_up(is_small.astype(np.int64)) > 0) & ~(tree.sum_up(is_own.astype(np.int64)) > 0)
    nodes = is_small | (dispatches & in_files(profile, _JAX) & ~below(profile, is_small))
    calls = float(evidence.calls[is_small].sum()) / n_steps
    yield from host_costs(evidence, nodes, HostCost("eager-jax", _beside(main, small, calls), _CHANGE, _SAVED))


def _is_short(evidence: Evidence, calls: BoolArray) -> bool:
    """Whether calls, [n_nodes], dispatch: longer ones compute, or wait for what computes."""
    return float(evidence.recurring_host_ns[calls].sum()) <= _SHORT_NS * float(evidence.calls[calls].sum())


def _without_steps(evidence: Evidence) -> Iterator[Finding]:
    """Operations that JAX dispatches one by one, in a program of which no jitted function is the step."""
    profile, tree = evidence.profile, evidence.profile.tree
    jitted = named(profile, lambda name: name.startswith(CALLS) and name != _STAGED)
    nodes = (jitted | in_files(profile, _JAX)) & ~evidence.compiling & ~evidence.host.waiting
    calls = np.bincount(tree.frame[jitted], evidence.calls[jitted], len(tree.frames))
    n_calls = float(calls.sum())
    if n_calls < _MANY or float(evidence.worked_ns[jitted].sum()) > _SHORT_NS * n_calls:
        return
    most = [tree.frames.name[frame] for frame in np.argsort(-calls, kind="stable")[:_N_NAMES] if calls[frame]]
    what = f"JAX calls {n_calls:,.0f} jitted functions of few operations, mostly {', '.join(most)}"
    yield from host_work(evidence, nodes, HostCost("eager-jax", what, _JIT, _SAVED), _LEAST)


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
    (_WAITS_OR_HOST_TIME,),
    (JITTED, IDLE_GPU, OF_STEP),
    "one jitted function a step",
    host_time=HostTime.CAUSE,
)
