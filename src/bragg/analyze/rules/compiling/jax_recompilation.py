"""Functions that JAX compiles again and again while the program runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved, moved_to
from bragg.analyze.causes.host_steps import host_steps
from bragg.analyze.causes.jitted_calls import (
    calls_of,
    is_of_program,
    lines_that_make,
    made_at,
    varying_statics,
    waits_for_calls,
)
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.causes.paths import below, hottest_place
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import Rule
from bragg.grouping.hlo_names import COMPILE, COMPILED
from bragg.model import Confidence, Finding, Gain, Place, Quantity, Severity
from bragg.model.table import BoolArray

# Fewer are the shapes of a first and a last batch.
_OFTEN = 3
_CLEARS = re.compile(r"\bclear_caches\(\)")
_N_FINDINGS = 2
_MOST = 0.5  # of the time that compilations take: then they belong to the steps


@dataclass(frozen=True)
class _Compiled:
    """Compilations of one module.

    Attributes:
        module: Its name.
        count: How many.
        time_ns: How long they took in all.
        longest_ns: And at most.
        steady_ns: And how long a GPU waited for them in the steady state.
        place: Who called.
        made: Who made the function; None: not known, or what it is called with decides.
        programs: How many programs these were; 0: not known.
        inputs: How many shapes and types of inputs these had.
        statics: Its static arguments that had many values, as far as the first calls tell.
        functions: How many lines make functions of that name.
        is_of_program: Whether a line of the program makes a jitted function of that name; None: not known.
        cleared: Which line throws away what was compiled; None: none does.
    """

    module: str
    count: int
    time_ns: float
    longest_ns: float
    steady_ns: float
    place: Place
    programs: int
    inputs: int
    made: Place | None = None
    statics: tuple[str, ...] = ()
    functions: int = 1
    is_of_program: bool | None = None
    cleared: Place | None = None

    @property
    def is_same(self) -> bool:
        """Whether most compilations repeat one of the same program; some may, as numbers in two are rounded alike."""
        return 0 < self.programs <= self.count / 4

    @property
    def follows_shapes(self) -> bool:
        """Whether functions of its name were compiled once for each shape and type of their inputs."""
        several = self.inputs > 1 and not self.statics
        return self.programs <= self.inputs * (self.functions if several else 1)

    def cause(self) -> tuple[str, str, Confidence]:
        """Why it was compiled again, what to do about it, and how sure that is."""
        if not self.programs:
            return (
                f"{_TIMES}: its calls differ in shapes, types or static arguments, or the program makes a new function "
                "each time",
                f"keep these and the function the same; {_EXPLAIN}",
                Confidence.LIKELY,
            )
        if self.cleared:
            return (
                f"{_TIMES}, the same program again: jax.clear_caches() throws away what was traced and compiled",
                "leave jax.clear_caches() out, or call it once, when no more is called of what was compiled",
                Confidence.LIKELY,
            )
        if self.is_same and self.statics:
            names = ", ".join(self.statics)
            return (
                f"{_TIMES}, the same program again: for static values that are not equal, of {names}",
                f"pass the same {names} each time, or equal ones: of a frozen dataclass, or with __eq__ and __hash__",
                Confidence.LIKELY,
            )
        if self.is_same:
            return (
                f"{_TIMES}, the same program again: a new function is made and jitted each time",
                "call jax.jit once, before the loop, and keep what it returns",
                Confidence.PROVEN,
            )
        if self.is_of_program is False:
            return f"{_TIMES}: no line of the program jits it", _EAGER, Confidence.HEURISTIC
        if self.follows_shapes:
            several = f" of each of {self.functions} functions of that name" if self.inputs < self.programs else ""
            return (
                f"{_TIMES}, for {self.inputs} different shapes or types of its inputs{several}",
                f"{_PAD}; {_TOGETHER}" if self.is_of_program is None else _PAD,
                Confidence.HEURISTIC,  # parameters of several shapes are as many programs
            )
        inputs = f"{self.inputs} different shapes or types" if self.inputs > 1 else "one shape and type"
        times = f"{_TIMES}, to {self.programs} programs for {inputs} of its inputs"
        if not self.statics:
            return (
                f"{times}: static arguments, or values that it reads, differ",
                f"pass these as arrays; {_EXPLAIN}",
                Confidence.LIKELY,
            )
        names = ", ".join(self.statics)
        is_field = all("." in name for name in self.statics)
        noun, kind = (
            ("field" if is_field else "argument", "an array")
            if len(self.statics) == 1
            else ("fields" if is_field else "arguments", "arrays")
        )
        how = "not with pytree_node=False or static=True" if is_field else "not in static_argnames or static_argnums"
        return (
            f"{times}: its static {noun} {names} had several values, and each takes a program",
            f"pass {names} as {kind}: {how}, if no shape depends on it",
            Confidence.LIKELY,
        )


_TIMES = "{0.module} was compiled {0.count} times, {1}"
_PAD = "pad inputs whose sizes vary to a few sizes, and mask the padding"
_TOGETHER = "operations on each parameter of a model belong into one jitted function, as jax.jit(model.init)"
_EAGER = (
    "jit the function that calls it (to make a model's parameters: jax.jit(model.init)); where sizes vary from turn to "
    "turn, pad them to a few"
)
_EXPLAIN = "JAX_EXPLAIN_CACHE_MISSES=1 lets JAX tell what differs"


def _find(evidence: Evidence) -> Iterator[Finding]:
    again = sorted(_compilations(evidence), key=lambda each: -each.time_ns)
    for each in again[:_N_FINDINGS]:
        message, change, confidence = each.cause()
        finding = Finding(
            "recompilation",
            Severity.WARNING,
            message.format(each, f"{each.time_ns / 1e9:.2g} s"),
            hint=change,
            node=each.place.node,
            file=each.place.file,
            line=each.place.line,
            evidence=(Quantity("compilations", each.count), Quantity("time", each.time_ns, "ns")),
            gain=_gain(evidence, each),
            confidence=confidence,
        )
        made = each.cleared or each.made
        finding = moved(finding, made) if made else finding
        yield moved_to(finding, [place for name in each.statics for place in _lines_of_field(evidence, name)])


def _lines_of_field(evidence: Evidence, static: str) -> list[Place]:
    """Where a dataclass says that a field is static; none: it is an argument."""
    _, dot, field = static.rpartition(".")
    is_static = r"\b(?:pytree_node=False|static=True)\b"
    return lines_of(evidence, re.compile(rf"^{re.escape(field)}\s*:.*{is_static}")) if dot else []


def _gain(evidence: Evidence, each: _Compiled) -> Gain | None:
    """All compilations but the longest, which is the first: it loads libraries, and tries kernels, for all of them."""
    waits_ns = float(waits_for_calls(evidence, calls_of(evidence, each.module)).sum()) if each.cleared else 0
    if waits_ns:
        return evidence.gain(waits_ns * (1 - 1 / each.count))
    wall_ns = evidence.profile.run.duration_ns
    again_ns = each.time_ns - max(each.time_ns / each.count, min(each.longest_ns, each.time_ns))
    steps = host_steps(evidence)
    if steps is not None and each.count >= WAITS.value * steps.made:
        return Gain(min(again_ns * steps.of_run, steps.duration_ns), steps.duration_ns)
    if evidence.n_steps and each.count >= WAITS.value * evidence.n_steps and each.steady_ns > _MOST * again_ns:
        return evidence.gain(min(again_ns, each.steady_ns))
    return Gain(min(again_ns, wall_ns), wall_ns, is_once=True) if wall_ns else None


def _compilations(evidence: Evidence) -> Iterator[_Compiled]:
    """Of what was compiled often, and more often than functions share its name."""
    profile = evidence.profile
    if "host_count" not in profile.metrics or "host_time" not in profile.metrics:
        return
    counts = profile.own("host_count")
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(profile.tree.frames.name):
        if name.startswith(COMPILE):
            rows.setdefault(name, []).append(row)
    for name, frames in rows.items():
        nodes = np.isin(profile.tree.frame, frames)
        count = int(counts[nodes].sum())
        if count >= _OFTEN and count > len(lines_that_make(evidence, name.removeprefix(COMPILE))):
            yield _compiled(evidence, name, nodes, count)


def _compiled(evidence: Evidence, name: str, nodes: BoolArray, count: int) -> _Compiled:
    profile = evidence.profile
    times = profile.inclusive("host_time")
    inside = below(profile, nodes)
    # Threads of XLA that compile side by side are added up in the host's time, but the GPU waits once.
    waited_ns = float(evidence.waits_of_run_ns[inside].sum())
    told = profile.run.attributes.get(name, {})
    programs = [value for key, value in told.items() if key.startswith(COMPILED)]
    module, place = name.removeprefix(COMPILE), hottest_place(profile, nodes, times)
    each = _Compiled(
        module,
        count,
        min(float(times[nodes].sum()), waited_ns or np.inf),
        float(evidence.longest_wait_ns[inside].max()),
        0.0 if evidence.idle_ns is None else float(evidence.idle_ns[inside].sum()),
        place,
        len(programs),
        len(set(programs)),
        functions=max(len(lines_that_make(evidence, module)), 1),
        is_of_program=is_of_program(evidence, module),
    )
    if each.is_same and (cleared := lines_of(evidence, _CLEARS)):
        return replace(each, cleared=cleared[0])
    if not each.is_same and each.programs == each.inputs:
        return each
    return replace(each, made=made_at(evidence, place.node, module), statics=varying_statics(evidence, module))


RULE = Rule(_find, "functions that JAX compiles again and again", (HOST_TIME,), (WAITS,))
