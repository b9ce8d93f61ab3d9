"""Gradients of parameters that no optimizer updates: each step adds to what earlier ones left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.host_steps import GPU_TIME_OR_STEPS, HostCost, host_costs, host_steps
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.causes.paths import MODULE_CALLS, below, children, in_files, lines_above, named
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import SHARE_OF_GPU
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Quantity
from bragg.model.finding import percent_text
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

_CHANGE = (
    "torch.no_grad() around the forward pass of a network that is not trained (a teacher, a target network), or "
    "requires_grad_(False) for its parameters; .detach() for what it gives to the network that is trained"
)
_GRADIENT = "torch::autograd::AccumulateGrad"
# Of the calls for one parameter, those that add: all but the first one where nobody empties it.
_UNREAD, _EMPTIED, _LEAST_PASSES = 0.9, 0.5, 10
_SELDOM = 0.1  # of the calls elsewhere: a warm-up


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, calls = evidence.profile, evidence.calls
    gradients = named(profile, _GRADIENT.__eq__) & (calls >= _LEAST_PASSES)
    gradients &= ~_of_warm_up(evidence, gradients)
    adds = children(profile, _GRADIENT, "aten::add_")
    added = np.bincount(profile.tree.parent[adds], calls[adds], len(calls)) / np.maximum(calls, 1)
    unread, emptied = gradients & (added >= _UNREAD), gradients & (added <= _EMPTIED)
    if not unread.any() or not emptied.any():
        return
    trained = _frames_above(evidence, emptied)
    lines = _lines(evidence, unread, trained)
    works = lines
    # With two optimizers a loss may need the gradients of a network that the other one trains, to get at its input.
    if _n_optimizers(evidence) > 1:
        works = lines = lines & _before(evidence, lines, emptied)
    else:
        shared, modules = _shared_lines(evidence, unread, emptied, trained)
        lines, works = lines | shared, lines | modules
    if not lines.any():
        return
    backward = below(profile, works) & below(profile, named(profile, "[backward]".__eq__))
    share = float(calls[unread].sum() / calls[gradients].sum())
    what = f"{percent_text(share)} of the gradients are of parameters that no optimizer updates afterwards"
    if host_steps(evidence) is not None:
        yield from host_costs(evidence, backward, HostCost("unread-gradients", what, _CHANGE, 1.0))
        return
    cause = Cause(
        "unread-gradients",
        f"{what}: each step adds to what earlier ones left",
        _CHANGE,
        whole_gain(evidence, backward),
        Confidence.LIKELY,
        (
            Quantity("gradients that nobody empties", share, "share"),
            Quantity(SHARE_OF_GPU, float(evidence.gpu_ns[backward].sum() / max(evidence.gpu_ns.sum(), 1.0)), "share"),
        ),
    )
    lines = _innermost(evidence, lines, unread, trained)
    of_line = np.where(lines, profile.tree.sum_up(np.where(backward, evidence.gpu_ns, 0.0)) + 1, 0.0)
    yield host_finding(evidence, lines, of_line, cause)


def _frames_above(evidence: Evidence, nodes: BoolArray) -> set[int]:
    """The lines above some nodes, wherever else they are called from."""
    profile = evidence.profile
    lines = (lines_above(profile, NodeId(node)) for node in np.flatnonzero(nodes).tolist())
    return {int(profile.tree.frame[line]) for each in lines for line in each}


def _innermost(evidence: Evidence, lines: BoolArray, unread: BoolArray, trained: set[int]) -> BoolArray:
    """For each line the innermost one that has all of its gradients in other lines: there the network is called.

    A line that also calls it to be trained is not meant.
    """
    tree, found = evidence.profile.tree, np.zeros(len(lines), np.bool_)
    counts = tree.sum_up(np.where(unread, evidence.calls, 0.0))
    chains = [lines_above(evidence.profile, NodeId(node)) for node in np.flatnonzero(unread).tolist()]
    for line in np.flatnonzero(lines).tolist():
        inside = [chain[chain.index(NodeId(line)) :] for chain in chains if line in chain]
        calling = [each for each in (inside[0] if inside else ()) if all(each in chain[:-1] for chain in inside)]
        calling = [each for each in calling if int(tree.frame[each]) not in trained]
        found[[each for each in calling if counts[each] == counts[line]][-1] if calling else line] = True
    return found


def _of_warm_up(evidence: Evidence, gradients: BoolArray) -> BoolArray:
    """Those of some gradients that another place of the program computes far more often: both [n_nodes].

    A first step fills gradients that all others add to.
    """
    tree, most, paths = evidence.profile.tree, dict[tuple[int, ...], float](), dict[int, tuple[int, ...]]()
    for node in np.flatnonzero(gradients).tolist():
        path, lines = tree.path(NodeId(node)), lines_above(evidence.profile, NodeId(node))
        paths[node] = tuple(tree.frame[path[path.index(lines[-1]) if lines else 0 :]].tolist())
        most[paths[node]] = max(most.get(paths[node], 0.0), float(evidence.calls[node]))
    found = np.zeros(len(tree), np.bool_)
    found[[node for node, path in paths.items() if evidence.calls[node] < _SELDOM * most[path]]] = True
    return found


def _n_optimizers(evidence: Evidence) -> int:
    steps = named(evidence.profile, lambda name: name.startswith("Optimizer.step#")) & (evidence.calls > 0)
    frames = evidence.profile.tree.frame[evidence.callers.line[steps]]
    return len(set(frames.tolist()))


def _lines(evidence: Evidence, unread: BoolArray, trained: set[int]) -> BoolArray:
    """The lines that call modules of which all gradients are unread: [n_nodes]."""
    profile, frame = evidence.profile, evidence.profile.tree.frame
    modules, found = in_files(profile, MODULE_CALLS), np.zeros(len(frame), np.bool_)
    for node in np.flatnonzero(unread).tolist():
        own = [line for line in lines_above(profile, node) if int(frame[line]) not in trained]
        if own:
            path = profile.tree.path(NodeId(node))
            called = next((step for step in path[path.index(own[0]) :] if modules[step]), own[0])
            found[[line for line in own if line in path[: path.index(called) + 1]][-1]] = True
    return found


def _shared_lines(
    evidence: Evidence, unread: BoolArray, emptied: BoolArray, trained: set[int]
) -> tuple[BoolArray, BoolArray]:
    """Lines that also call what is trained, `self.head(self.backbone(x))`, and the calls of the others: [n_nodes]."""
    tree, lines, calls = evidence.profile.tree, np.zeros(len(unread), np.bool_), np.zeros(len(unread), np.bool_)
    is_trained = tree.sum_up(emptied.astype(np.int64)) > 0
    for node in np.flatnonzero(unread).tolist():
        above = lines_above(evidence.profile, node)
        if not above or any(int(tree.frame[each]) not in trained for each in above):
            continue
        path = tree.path(NodeId(node))
        shared = [step for step in path if is_trained[step]]
        parting = path[path.index(shared[-1]) + 1] if shared else node
        before = [each for each in above if each in shared]
        if before and tree.kind[parting] == FrameKind.PYTHON:
            lines[before[-1]] = calls[parting] = True
    return lines, calls


def _before(evidence: Evidence, lines: BoolArray, emptied: BoolArray) -> BoolArray:
    """Those of some lines whose function calls what is trained on later lines alone: both [n_nodes]."""
    profile, function = evidence.profile, evidence.callers.function_of_line
    number = profile.tree.frames.line[profile.tree.frame]
    trained = [line for node in np.flatnonzero(emptied).tolist() for line in lines_above(profile, node)]
    found = np.zeros(len(lines), np.bool_)
    for line in np.flatnonzero(lines).tolist():
        others = [number[each] for each in trained if function[each] == function[line]]
        found[line] = bool(others) and min(others) > number[line]
    return found


RULE = Rule(
    _find,
    "gradients of parameters that no optimizer updates",
    (GPU_TIME_OR_STEPS, OPERATORS),
    (),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
