"""A network that each step calls several times on small batches, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.paths import MODULE_CALLS, below, in_files, lines_above, named
from bragg.analyze.causes.thresholds import FEW_TWINS, MANY_LAUNCHES, OF_HOST, RECURRING
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Quantity
from bragg.model.finding import percent_text
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

_CHANGE = "call it once on both batches: net(torch.cat([a, b])).chunk(2), if no call needs the result of another"
_SAVED = 0.9
_FORWARD = "torch: forward"  # around the outermost module


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None or not evidence.wall_ns:
        return
    for lines, n_calls, often in _twins(evidence):
        nodes = below(evidence.profile, lines) & evidence.host.launching
        waits_ns = float(evidence.idle_ns[nodes].sum())
        launches = float(evidence.gpu_count[nodes].sum()) / often
        share = waits_ns / evidence.wall_ns
        if share < OF_HOST.value or launches < MANY_LAUNCHES.value:
            continue
        cause = Cause(
            "twin-calls",
            f"the same modules are called {n_calls} times, one after the other, with {launches:,.0f} launches: the GPU "
            f"waits for these {percent_text(share)} of the time",
            _CHANGE,
            evidence.gain(waits_ns * (1 - 1 / n_calls) * _SAVED),
            Confidence.HEURISTIC,
            (Quantity("calls", n_calls), Quantity("launches of these calls", launches)),
        )
        of_lines = evidence.profile.tree.sum_up(np.where(nodes, evidence.idle_ns, 0.0))
        yield host_finding(evidence, lines, of_lines, cause)


def _twins(evidence: Evidence) -> Iterator[tuple[BoolArray, int, float]]:
    """Lines of one function that call modules of the same code, [n_nodes], how many calls, and how often these."""
    tree, callers = evidence.profile.tree, evidence.callers
    alike: dict[tuple[int, frozenset[tuple[str, int]]], list[NodeId]] = {}
    called = _sites(evidence)
    without_regions = not called
    called = called or _unmeasured_sites(evidence)
    for line in called:
        alike.setdefault((int(callers.function_of_line[line]), _code(evidence, line)), []).append(line)
    function = np.where(callers.is_direct & (evidence.calls >= RECURRING.value), callers.function, -1)
    for (number, code), sites in alike.items():
        calls = [called[line] for line in sites]
        if without_regions and len(sites) == 1:
            continue
        # Other operators of the function run once where these modules run several times, if one line calls them.
        others = evidence.calls[(function == number) & (not without_regions)]
        often = float(others.min(initial=min(calls)))
        if code and often >= RECURRING.value and 2 <= round(sum(calls) / often) <= FEW_TWINS.value:
            yield np.isin(np.arange(len(tree)), sites), round(sum(calls) / often), often


def _sites(evidence: Evidence) -> dict[NodeId, float]:
    """Lines of the program that call modules, and that no module calls: how often each does so."""
    profile = evidence.profile
    found: dict[NodeId, float] = {}
    for node in np.flatnonzero(named(profile, _FORWARD.__eq__) & (evidence.calls > 0)).tolist():
        if lines := lines_above(profile, NodeId(node)):
            found[lines[-1]] = found.get(lines[-1], 0.0) + float(evidence.calls[node])
    return found


def _unmeasured_sites(evidence: Evidence) -> dict[NodeId, float]:
    """The same without the regions of a recording, where several lines can be compared, and one cannot be counted.

    Each line calls its modules in proportion to how often these call the operator that they call least.
    """
    profile = evidence.profile
    modules = in_files(profile, MODULE_CALLS)
    outermost = modules & ~below(profile, modules)[np.maximum(profile.tree.parent, 0)]
    lines = {(lines_above(profile, NodeId(node)) or [NodeId(0)])[-1] for node in np.flatnonzero(outermost).tolist()}
    found = {}
    for line in sorted(lines - {NodeId(0)}):
        counts = evidence.calls[_operators(evidence, line) & (evidence.callers.line != line)]
        if counts.any():
            found[line] = float(counts[counts > 0].min())
    return found


def _operators(evidence: Evidence, line: NodeId) -> BoolArray:
    inside = np.zeros(len(evidence.profile.tree), np.bool_)
    inside[line] = True
    is_called = (evidence.callers.line > 0) & evidence.has_work
    found: BoolArray = below(evidence.profile, inside) & is_called & (evidence.profile.tree.kind == FrameKind.OPERATOR)
    return found


def _code(evidence: Evidence, line: NodeId) -> frozenset[tuple[str, int]]:
    """The operators below a line, and the lines that call them: names or files, and numbers of lines."""
    nodes = np.flatnonzero(_operators(evidence, line) & (evidence.callers.line != line))
    frames, frame = evidence.profile.tree.frames, evidence.profile.tree.frame
    rows = {*frame[nodes].tolist(), *frame[evidence.callers.line[nodes]].tolist()}
    return frozenset((frames.file[row] or frames.name[row], int(frames.line[row])) for row in rows)


RULE = Rule(
    _find,
    "networks that each step calls several times on small batches",
    (IDLE, OPERATORS),
    (FEW_TWINS, MANY_LAUNCHES, OF_HOST, RECURRING),
    _CHANGE,
    host_time=HostTime.LOOP,
)
