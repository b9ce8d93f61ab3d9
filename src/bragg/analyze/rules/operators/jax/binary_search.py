"""Values that JAX looks up turn by turn, in knots that are equally spaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, TEXT
from bragg.analyze.causes.paths import below, named, operation_line
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import calls_at
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_WORK = Work(
    "binary-search",
    "each value is looked up by a binary search, in a loop of JAX, though the knots are equally spaced",
    "compute the place: place = (x - first) / step; i = place.astype(int); then table[i] and table[i + 1], weighted "
    "with place - i, in place of jnp.interp",
    0.9,
    Confidence.HEURISTIC,
    is_launched=True,
)
_SEARCHES = ("interp", "searchsorted", "digitize")
_EQUAL = ("linspace", "arange")


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, searches_of_equal_steps(evidence), _WORK)


def searches_of_equal_steps(evidence: Evidence) -> BoolArray:
    """Work of the GPU that looks up in knots of equal steps, as far as the program's text tells: [n_nodes]."""
    profile = evidence.profile
    searches = below(profile, named(profile, "_searchsorted_scan_impl".__eq__)) & (evidence.gpu_ns > 0)
    meant = np.zeros(len(searches), np.bool_)
    for node in np.flatnonzero(searches).tolist():
        name, line = operation_line(profile, node)
        file = evidence.text.file(name) if name else None
        statement = file.statement(line) if file else None
        meant[node] = file is not None and statement is not None and _is_of_equal_steps(file, statement)
    return meant


def _is_of_equal_steps(file: FileText, statement: ast.stmt) -> bool:
    """Whether it looks up in what `linspace` or `arange` makes: `jnp.interp(x, jnp.linspace(0, 1, n), table)`."""
    knots = [each for call in calls_at(statement, *_SEARCHES) for each in call.args[:2]]
    return any(isinstance(made, ast.Call) and call_name(made) in _EQUAL for each in knots for made in file.makers(each))


RULE = Rule(
    _find,
    "binary searches in knots that are equally spaced",
    (GPU_TIME, TEXT),
    (MUCH_GPU,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
