"""Loops of Python that do little in each turn, in programs without a GPU.

Going to the next turn costs as much; or a turn computes one element of an array, which the text tells.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import HOST_TIME, TEXT
from bragg.analyze.causes.text.element_loops import computes_elements, stores_one_element
from bragg.analyze.causes.text.program_text import FileText, Loop, call_name
from bragg.analyze.causes.thresholds import (
    ELEMENT_TURN,
    FEW_SAMPLES,
    MOST_OF_TURNS,
    MUCH_LOOP,
    NEXT_TURN,
)
from bragg.analyze.engine import Rule
from bragg.analyze.imports import imports_apart
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity
from bragg.model.finding import percent_text
from bragg.model.host_time import WAIT_TIME
from bragg.model.table import FloatArray

_CHANGE = (
    "compute with whole arrays: NumPy's or PyTorch's operators (a @ b, a * b, a.sum()); if each turn needs the one "
    "before: numba.njit"
)
# An array operator takes a hundredth to a tenth of the time of the loop that it replaces.
_SAVED = 0.9
# They give the next number without work of their own.
_COUNTERS = {"range", "enumerate", "zip", "reversed", "len"}


@dataclass
class _Time:
    """Own time of the lines of one loop.

    Attributes:
        file: The text that it is in.
        loop: It.
        nodes: Of its lines.
        total_ns: Of all of them.
        turns_ns: Of the line that goes to the next turn.
        samples: How often they were seen.
        turn_samples: How often that line was seen.
    """

    file: FileText
    loop: Loop
    nodes: list[int] = field(default_factory=list)
    total_ns: float = 0.0
    turns_ns: float = 0.0
    samples: float = 0.0
    turn_samples: float = 0.0

    @property
    def of_turns(self) -> float:
        """Share of going to the next turn, 0 to 1."""
        return self.turns_ns / self.total_ns if self.total_ns else 0.0


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.profile.measured("gpu_time"):
        return
    host_ns = float(imports_apart(evidence.profile)[0].own("host_time").sum())
    own_ns = _worked_ns(evidence)
    for time in _innermost_loops(evidence, own_ns):
        does = _little(time) if time.total_ns >= MUCH_LOOP.value * host_ns else None
        if does is None:
            continue
        what, tells_turns = does
        share = time.total_ns / host_ns
        cause = Cause(
            "python-loop",
            f"a loop of Python {what}, and takes {percent_text(share)} of the host's time"
            f"{_of_next_turns(time.turns_ns / host_ns) if tells_turns else ''}",
            _CHANGE,
            Gain(time.total_ns * _SAVED, host_ns),
            Confidence.HEURISTIC,
            (Quantity("loop", time.total_ns, "ns"), Quantity("next turns", time.turns_ns, "ns")),
        )
        nodes = np.isin(np.arange(len(own_ns)), time.nodes)
        yield host_finding(evidence, nodes, own_ns, cause)


def _of_next_turns(share: float) -> str:
    return f", going to the next turn alone {percent_text(share)}"


def _little(time: _Time) -> tuple[str, bool] | None:
    """The little that a loop does in each turn, and whether the time between turns tells it; None: it may do much."""
    is_of_elements = computes_elements(time.file, time.loop)
    if is_of_elements and time.samples >= FEW_SAMPLES.value and stores_one_element(time.file, time.loop):
        return "computes one element of an array in each turn", False
    least = ELEMENT_TURN if is_of_elements else NEXT_TURN
    is_short = least.value <= time.of_turns <= MOST_OF_TURNS.value and time.turn_samples >= FEW_SAMPLES.value
    if not is_short or not _computes(time.loop):
        return None
    return "does little in each turn", True


def _worked_ns(evidence: Evidence) -> FloatArray:
    """Own time of lines of Python without what they waited: [n_nodes]."""
    profile = evidence.profile
    own_ns = np.nan_to_num(profile.own("host_time").astype(np.float64))
    if WAIT_TIME in profile.metrics:
        own_ns = own_ns - np.nan_to_num(profile.own(WAIT_TIME).astype(np.float64))
    return np.where(profile.tree.kind == FrameKind.PYTHON, own_ns, 0.0)


def _innermost_loops(evidence: Evidence, own_ns: FloatArray) -> list[_Time]:
    """Innermost loops that count, that of most time first."""
    found: dict[Loop, _Time] = {}
    samples = evidence.profile.own("samples") if "samples" in evidence.profile.metrics else np.zeros(len(own_ns))
    for node in np.flatnonzero(own_ns > 0).tolist():
        at = evidence.text.at(node)
        if at is None:
            continue
        file, statement = at
        is_turn = isinstance(statement, (ast.For, ast.While))
        around = [statement] if isinstance(statement, (ast.For, ast.While)) else file.loops_of(statement)[-1:]
        for loop in around:
            if _counts(loop):
                time = found.setdefault(loop, _Time(file, loop))
                time.nodes.append(node)
                time.total_ns += float(own_ns[node])
                time.turns_ns += float(own_ns[node]) * is_turn
                time.samples += float(samples[node])
                time.turn_samples += float(samples[node]) * is_turn
    return sorted(found.values(), key=lambda time: -time.total_ns)


def _counts(loop: Loop) -> bool:
    """It is an innermost loop, and what decides on its next turn neither reads nor waits."""
    if any(isinstance(part, (ast.For, ast.AsyncFor, ast.While)) for part in walk(loop) if part is not loop):
        return False
    decides = loop.test if isinstance(loop, ast.While) else loop.iter
    return all(call_name(part) in _COUNTERS for part in parts_of(decides, ast.Call))


def _computes(loop: Loop) -> bool:
    """There is arithmetic in its body."""
    return any(isinstance(part, (ast.BinOp, ast.AugAssign)) for each in loop.body for part in walk(each))


RULE = Rule(
    _find,
    "loops of Python that do little in each turn",
    (HOST_TIME, TEXT),
    (ELEMENT_TURN, FEW_SAMPLES, MOST_OF_TURNS, MUCH_LOOP, NEXT_TURN),
    _CHANGE,
)
