"""Rows of a table that are looked up by a product with a matrix of zeros and ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.kernel_class import CLASSES, PRODUCTS, classes_of_nodes
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named, operation_line
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "one-hot",
    "one-hot rows, their casts and their products",
    "look the rows up: table[ids] or torch.nn.functional.embedding; cross entropies take the numbers of the classes",
    1.0,
    Confidence.LIKELY,
    is_launched=True,
)
_MAKES = re.compile(r"aten::one_hot|_one_hot")
_MULTIPLIES = re.compile(r"aten::(?:matmul|mm|bmm|einsum|tensordot)")  # not those of layers, which are linear or addmm
_CASTS = re.compile(r"direct_copy_kernel|copy_kernel_cuda")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    works = evidence.gpu_ns > 0
    makes = named(profile, _MAKES.fullmatch)
    rows = below(profile, makes) & works
    if not rows.any():
        return
    uses = (classes_of_nodes(profile.tree) == CLASSES.index(PRODUCTS)) | named(profile, _CASTS.search)
    uses &= works & ~rows
    soon = below(profile, evidence.callers.near(named(profile, _MULTIPLIES.fullmatch), makes))
    lines = {operation_line(evidence.profile, node) for node in np.flatnonzero(rows).tolist()} - {("", 0)}
    for node in np.flatnonzero(uses).tolist():
        rows[node] = soon[node] or operation_line(evidence.profile, node) in lines
    yield from work_findings(evidence, rows, _WORK)


RULE = Rule(_find, "rows that are looked up by products with zeros and ones", (GPU_TIME,), (MUCH_GPU,), _WORK.change)
