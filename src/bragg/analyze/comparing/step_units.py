"""Whether steps of several runs are the same: a step of one optimizer, calls of one function, turns of one loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.analyze.causes.text.program_text import ProgramText
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.step_times import step_times
from bragg.analyze.wall.turns import header_of, turns_of
from bragg.grouping.regions import LOOP, step_function
from bragg.model import FrameKind, Profile
from bragg.model.ids import NodeId

_STEP = "step"
# Calls before the loop, to compile and to try, and turns that were left out.
_BESIDE = 0.1


def turn_time(run: Profile) -> tuple[float, int] | None:
    """What a turn of the loop took whose turns are the steps of a run, ns, and how many there are; None: of no loop."""
    if not run.measured("gpu_time"):
        turns = turns_of(run) if step_times(run) is None else None
        return (turns.host_ns, turns.count) if turns else None
    parts = wall_parts(run)
    steady = parts.steady if parts else None
    return (steady.step_ns, steady.n_steps) if steady and steady.step_of.startswith(LOOP) else None


def are_alike(runs: Sequence[Profile]) -> bool:
    """Whether steps of all runs are the same thing."""
    return bool(set.intersection(*map(_units, runs)))


def differ(runs: Sequence[Profile]) -> bool:
    """Whether all runs made steps, but not of the same thing."""
    units = [_units(run) for run in runs]
    return all(units) and not set.intersection(*units)


def _units(run: Profile) -> set[tuple[str, ...]]:
    """What a step of a run is: what makes it, in which loops, and the loop that makes one in each turn."""
    times, turns = step_times(run), turns_of(run)
    name = times.name if times else _STEP if _STEP in run.run.regions else ""
    found = set() if name.startswith(LOOP) or not name else {(name, *_loops_around(run, name))}
    if turns and (times is None or abs(times.count - turns.count) <= _BESIDE * turns.count):
        found.add((turns.header,))
    return found


def _loops_around(run: Profile, function: str) -> list[str]:
    """The loops of the program that a jitted function is called in, the outermost first."""
    tree = run.tree
    is_function = np.array([name == function for name in tree.frames.name], np.bool_)[tree.frame]
    if function != step_function(run.meta) or "host_count" not in run.metrics or not is_function.any():
        return []
    text, most = ProgramText(run), int(np.where(is_function, run.own("host_count"), -1).argmax())
    places = [at for node in tree.path(NodeId(most)) if tree.kind[node] == FrameKind.PYTHON and (at := text.at(node))]
    return [header_of(loop) for file, statement in places for loop in file.loops_of(statement)]
