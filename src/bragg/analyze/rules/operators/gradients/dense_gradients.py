"""Gradients of embeddings that are as large as the table, though a step uses few of its rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.makers import moved_to_makers
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import makers_of_called
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Gain

_WORK = Work(
    "dense-embedding-gradient",
    "gradients of an embedding are filled with zeros for all of its rows, of which a step uses few",
    "sparse=True for this embedding, and SparseAdam or SGD for its table, which update the rows of the batch alone",
    1.0,
    Confidence.HEURISTIC,
    is_launched=True,
)
_GRADIENT = re.compile(r"aten::(?:embedding_dense_backward|_embedding_bag_dense_backward)")
_LAYERS = re.compile("Embedding(?:Bag)?")
_FILL = re.compile(r"FillFunctor|^set$|[Mm]emset")
_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")
# Passes over the table in which the optimizer reads and writes weights, gradients and state; the zeros are one.
_PASSES = {"Adam": 7, "AdamW": 7, "NAdam": 7, "RAdam": 7, "RMSprop": 5, "Adagrad": 5}
_LEAST_PASSES = 3  # without state: reads weights and gradients, writes weights


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    inside = below(profile, named(profile, _GRADIENT.fullmatch))
    zeros = inside & named(profile, _FILL.search)
    zeros_ns, added_ns = (float(evidence.gpu_ns[nodes].sum()) for nodes in (zeros, inside & ~zeros))
    # What sorts and adds up the rows of a batch as large as the table takes more than twice as long as filling it.
    if zeros_ns > added_ns / 2:
        for finding in work_findings(evidence, zeros, _WORK):
            found = replace(finding, gain=_with_update(evidence, whole_gain(evidence, inside), zeros_ns))
            # Where the layer is made it is said what its gradient is like.
            yield moved_to_makers(evidence, found, _layers_called)


def _layers_called(file: FileText, call: ast.Call) -> list[ast.Call]:
    made = makers_of_called(file, call)
    return [each for each in made if isinstance(each, ast.Call) and _LAYERS.fullmatch(call_name(each))]


def _with_update(evidence: Evidence, gain: Gain | None, zeros_ns: float) -> Gain | None:
    """A gain, with that of the optimizer that works most, if it passes over the rows of the batch alone."""
    profile = evidence.profile
    kinds = {name: match[1] for name in profile.tree.frames.name if (match := _STEP.match(name))}
    updates = {name: below(profile, named(profile, name.__eq__)) for name in kinds}
    update_ns = {name: float(evidence.gpu_ns[nodes].sum()) for name, nodes in updates.items()}
    most = max(update_ns, key=lambda name: update_ns[name], default="")
    if gain is None or not update_ns.get(most):
        return gain
    passes = _PASSES.get(kinds[most], _LEAST_PASSES)
    saved = evidence.gpu_gain(updates[most], min(passes * zeros_ns / update_ns[most], 1.0))
    return gain if saved is None else evidence.gain(gain.wall_ns + saved.wall_ns, gain.limit)


RULE = Rule(
    _find,
    "gradients of large embeddings that are mostly zeros",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
