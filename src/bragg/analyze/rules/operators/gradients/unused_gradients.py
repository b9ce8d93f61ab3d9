"""Operators that are recorded for a backward pass which never runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved_to
from bragg.analyze.causes.needs import AUTOGRAD, OPERATORS
from bragg.analyze.causes.paths import BACKWARD, below, named
from bragg.analyze.causes.text.program_text import call_name
from bragg.analyze.causes.text.text_calls import argument
from bragg.analyze.causes.thresholds import MANY_NODES, WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of
from bragg.grouping.hlo_names import RECOMPUTE
from bragg.model import Confidence, Finding, FrameKind, Place, Profile, Quantity
from bragg.model.table import BoolArray

_CHANGE = "run the forward pass in torch.inference_mode() or torch.no_grad()"
_CHANGE_OF_GRAPH = "leave create_graph=True out: nothing differentiates this gradient again"
_DIFFERENTIATES = re.compile(r"grad|backward|jacobian|hessian|vjp|jvp|hvp|vhp|jac\w+|value_and_grad")
# Of the host's time in operators, what inference_mode leaves out: our pair took 31 % less on an H100.
_SAVED = 0.3
_PART = 0.2  # of what autograd records: less is a metric


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    made, ran = profile.run.autograd_nodes or 0, profile.run.evaluated_nodes or 0
    unused = made - ran - _recomputed(profile)
    if unused < max(MANY_NODES.value, _PART * made):
        return
    goes_back = named(profile, BACKWARD.fullmatch)
    if goes_back.any() and not ran:
        return
    operators = (profile.tree.kind == FrameKind.OPERATOR) & ~_of_passes(evidence, goes_back)
    operators &= (evidence.calls == 0) | (evidence.calls >= WAITS.value * evidence.steps)  # not what makes the model
    weight = np.where(operators, profile.tree.sum_up(evidence.host_ns), 0.0)
    cause = Cause(
        "unused-gradients",
        f"autograd recorded {unused:,} operators and kept their tensors, for a backward pass that did not run in this "
        "recording",
        _CHANGE,
        evidence.host_gain(operators & evidence.host.launching, _SAVED),
        Confidence.LIKELY,
        (Quantity("recorded operators", made), Quantity("of these in a backward pass", ran)),
    )
    found, graphs = host_finding(evidence, operators, weight, cause), _needless_graphs(evidence)
    if graphs:  # what a graph of a gradient costs was not measured
        found = replace(found, hint=_CHANGE_OF_GRAPH, gain=None, confidence=Confidence.HEURISTIC)
    yield moved_to(found, graphs)


def _needless_graphs(evidence: Evidence) -> list[Place]:
    """Where a gradient keeps its own graph (`create_graph=True`), if the program has no other call that differentiates.

    Empty as well where what is differentiated may come from that call itself.
    """
    names = [name for name in evidence.profile.sources if name.endswith(".py")]
    calls = [
        (name, file, each)
        for name in names
        if (file := evidence.text.file(name))
        for each in parts_of(file.tree, ast.Call)
        if _DIFFERENTIATES.fullmatch(call_name(each))
    ]
    if len(calls) != 1:
        return []
    ((name, file, call),) = calls
    created = argument(call, "create_graph")
    is_again = any(part is call for value in call.args[:1] for part in file.origins(value))
    is_kept = isinstance(created, ast.Constant) and created.value is True and not is_again
    return [Place(name, call.lineno)] if is_kept else []


def _recomputed(profile: Profile) -> int:
    """At most so many operators were recorded while checkpoints ran them again: one of both is never evaluated."""
    if "host_count" not in profile.metrics:
        return 0
    return int(profile.own("host_count")[below(profile, named(profile, RECOMPUTE[1].__eq__))].sum())


def _of_passes(evidence: Evidence, goes_back: BoolArray) -> BoolArray:
    """Nodes of lines with a backward pass, and of optimizers: [n_nodes]."""
    profile, line = evidence.profile, evidence.callers.line
    lines = np.zeros(len(line), np.bool_)
    lines[line[profile.tree.sum_up(goes_back.astype(np.int64)) > 0]] = True
    lines[0] = False
    of_optimizers = named(profile, lambda name: name.startswith("Optimizer."))
    return below(profile, lines[line] | goes_back | of_optimizers)


RULE = Rule(
    _find,
    "operators recorded for a backward pass that never runs",
    (OPERATORS, AUTOGRAD),
    (MANY_NODES, WAITS),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
