"""Copies within the memory of a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.input_waits import SINGLE, is_of_gpu_items, loading, waits_for_batches_ns
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.operators.jax.binary_search import searches_of_equal_steps
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_WORK = Work(
    "device-copies",
    "copies within the memory of the GPU",
    "write results where they are needed: out=, a buffer that is large enough instead of cat() in each step, views "
    "instead of clone(), donate_argnums in JAX",
    1.0,
    Confidence.LIKELY,
    least_share=0.05,
)

# What PyTorch's cat and stack launch.
_COPIES = re.compile(r"^copy DtoD$|CatArrayBatchedCopy")


def _find(evidence: Evidence) -> Iterator[Finding]:
    go_with_others = _in_late_loader(evidence) | searches_of_equal_steps(evidence)
    yield from work_findings(evidence, named(evidence.profile, _COPIES.search) & ~go_with_others, _WORK)


def _in_late_loader(evidence: Evidence) -> BoolArray:
    """What a loader runs that puts together items on the GPU, which waits longer for it than it copies: [n_nodes].

    Whole batches, which are advised for the wait, need no copies.
    """
    inside = loading(evidence.profile, SINGLE)
    is_late = waits_for_batches_ns(evidence, SINGLE) > float(evidence.gpu_ns[inside].sum())
    return inside if is_late and is_of_gpu_items(evidence) else np.zeros(len(inside), np.bool_)


RULE = Rule(_find, "copies within the memory of the GPU", (GPU_TIME,), (MUCH_GPU,), _WORK.change)
