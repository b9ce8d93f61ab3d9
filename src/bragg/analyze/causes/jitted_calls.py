"""What a call of a jitted function of JAX launches, what of it is in loops of XLA, and what is told of the function."""

from __future__ import annotations

import ast
import re

import numpy as np

from bragg.analyze.causes.facts import Facts
from bragg.analyze.causes.paths import below, named
from bragg.grouping.hlo_names import CALLS, MADE_AT, VARIES
from bragg.model import FrameKind, Place
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray, FloatArray


def in_loops(facts: Facts) -> BoolArray:
    """Nodes in loops of XLA, as scan, map and fori_loop make them: [n_nodes]."""
    return below(facts.profile, named(facts.profile, "while".__eq__))


def launches_of_call(facts: Facts) -> FloatArray:
    """How often each kernel or copy runs in a call of its jitted function, [n_nodes]; 0 for all else."""
    profile, tree = facts.profile, facts.profile.tree
    launches: FloatArray = np.zeros(len(tree))
    is_work = np.isin(tree.kind, (FrameKind.KERNEL, FrameKind.MEMORY)) & ~facts.compiling  # which tries kernels
    for call in np.flatnonzero(named(profile, lambda name: name.startswith(CALLS)) & (facts.calls > 0)).tolist():
        inside = below(profile, np.arange(len(tree)) == call) & is_work
        launches[inside] = facts.gpu_count[inside] / facts.calls[call]
    return launches


def made_at(facts: Facts, node: NodeId | None, module: str = "") -> Place | None:
    """The only line that makes the jitted function whose call is at or above a node.

    Args:
        facts: Of the profile.
        node: None: not known.
        module: Name of the function's module; empty: any function.

    Returns:
        The line; None: there is none, or several make functions of that name.
    """
    tree = facts.profile.tree
    calls = [tree.frames.name[tree.frame[step]] for step in tree.path(node)] if node is not None else []
    lines = set().union(*(_told(facts, name, MADE_AT) for name in calls if not module or _is_of(name, module)))
    if len(lines) != 1:
        return None
    file, _, line = lines.pop().rpartition(":")
    return Place(file, int(line), node=node) if line.isdecimal() else None


def lines_that_make(facts: Facts, module: str) -> set[str]:
    """The lines that make jitted functions of a module's name, as `file:line`; empty: not known."""
    names = facts.profile.run.attributes.keys()
    return set().union(*(_told(facts, name, MADE_AT) for name in names if _is_of(name, module)))


def is_of_program(facts: Facts, module: str) -> bool | None:
    """Whether a line of the program jits functions of a module's name; None: not known of any.

    What is called outside of jitted functions, JAX jits itself.
    """
    makers = any(_told(facts, name, MADE_AT) for name in facts.profile.run.attributes)
    return any(_jits(facts, line) for line in lines_that_make(facts, module)) if makers else None


def _jits(facts: Facts, line: str) -> bool:
    """Whether a line may call what jits, as far as its text tells: that of decorators is not looked at."""
    file, _, number = line.rpartition(":")
    text = facts.text.file(file)
    statement = text.statement(int(number)) if text else None
    return statement is None or hasattr(statement, "body") or bool(_JITS.search(ast.unparse(statement)))


def varying_statics(facts: Facts, module: str) -> tuple[str, ...]:
    """Static arguments of the jitted functions of a module's name that were new at each of their first calls."""
    names = facts.profile.run.attributes.keys()
    return tuple(sorted(set().union(*(_told(facts, name, VARIES) for name in names if _is_of(name, module)))))


def _told(facts: Facts, name: str, kind: str) -> set[str]:
    """What attributes of a kind say of jitted functions of a name."""
    attributes = facts.profile.run.attributes.get(name, {}) if name.startswith(CALLS) else {}
    return {key.removeprefix(kind) for key in attributes if key.startswith(kind)}


def waits_for_calls(facts: Facts, calls: BoolArray) -> FloatArray:
    """How long a GPU waits for calls of jitted functions, ns [n_nodes]; 0: for other nodes, or not known."""
    if facts.idle_ns is None:
        return np.zeros(len(calls))
    return np.where(calls, np.maximum(facts.code_wait_ns, facts.idle_ns), 0.0)


def calls_of(facts: Facts, module: str) -> BoolArray:
    """Calls of jitted functions of a module's name: [n_nodes]."""
    return named(facts.profile, lambda name: _is_of(name, module))


def _is_of(name: str, module: str) -> bool:
    return _WORDS.sub("", name) == _WORDS.sub("", module)


_JITS = re.compile("jit|pmap|compile", re.IGNORECASE)
_WORDS = re.compile(r"[\W_]")
