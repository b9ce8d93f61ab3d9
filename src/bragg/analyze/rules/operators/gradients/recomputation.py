"""Activations that the backward pass computes once more, to save memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.host_steps import GPU_TIME_OR_STEPS, HostCost, host_costs, host_steps
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU, OF_STEP
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, Place

_WORK = Work(
    "recomputed-activations",
    "checkpoints compute activations a second time in the backward pass, to save memory",
    "if GPU memory is left (bragg run --memory shows the peak): no torch.utils.checkpoint (JAX: jax.checkpoint), "
    "or for fewer layers",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    is_launched=True,
)
_WITHOUT_GPU = HostCost(
    _WORK.rule, _WORK.what, "if memory is left: no torch.utils.checkpoint, or for fewer layers", saved=1.0
)
_MODULES = re.compile(r"torch\.utils\.checkpoint|jax(?:\.ad_checkpoint)?|flax\.(?:linen|nnx)")
_FUNCTIONS = ("checkpoint", "checkpoint_sequential", "remat", "remat_scan")
_WRITTEN = re.compile(
    r"(?:.+\.)?checkpoint\.checkpoint(?:_sequential)?|jax(?:\.ad_checkpoint)?\.(?:checkpoint|remat)|"
    r"(?:flax\.)?(?:nn|linen|nnx)\.(?:checkpoint|remat|remat_scan)|.+\.gradient_checkpointing_enable"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    again = below(profile, named(profile, "[recompute]".__eq__))
    if host_steps(evidence) is not None:
        findings = host_costs(evidence, again, _WITHOUT_GPU)
    else:
        findings = work_findings(evidence, again, _WORK)
    for finding in findings:
        yield moved_to(finding, _written(evidence, finding))


def _written(evidence: Evidence, finding: Finding) -> list[Place]:
    """Where the program makes checkpoints: first the lines that a finding names already."""
    told = {(finding.file, finding.line), *((each.file, each.line) for each in finding.places)}
    places = [
        Place(name, line)
        for name in evidence.profile.sources
        if name.endswith(".py") and (file := evidence.text.file(name))
        for line in sorted(_lines(file.tree))
    ]
    return sorted(places, key=lambda place: (place.file, place.line) not in told)


def _lines(tree: ast.Module) -> set[int]:
    imports = list(parts_of(tree, ast.ImportFrom))
    names = {
        each.asname or each.name
        for made in imports
        if _MODULES.fullmatch(made.module or "")
        for each in made.names
        if each.name in _FUNCTIONS
    }
    parts = [each for each in walk(tree) if isinstance(each, (ast.Name, ast.Attribute))]
    return {
        each.lineno
        for each in parts
        if (each.id in names if isinstance(each, ast.Name) else _WRITTEN.fullmatch(ast.unparse(each)))
    }


RULE = Rule(
    _find,
    "activations that are computed twice",
    (GPU_TIME_OR_STEPS,),
    (MUCH_GPU, OF_STEP),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
