"""Attention that writes the whole matrix of scores to memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import OPERATIONS, below, named, place_of
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

_WORK = Work(
    "unfused-attention",
    "attention that writes its whole matrix of scores to memory",
    "torch.nn.functional.scaled_dot_product_attention in bfloat16 or float16, with is_causal instead of a mask; "
    'jax.nn.dot_product_attention(implementation="cudnn")',
    0.8,
    Confidence.LIKELY,
    is_launched=True,
)
_MATH = "aten::_scaled_dot_product_attention_math"
_SCORES = re.compile(r"aten::_?softmax|aten::_safe_softmax")
_PRODUCTS = re.compile(r"aten::(?:bmm|baddbmm|matmul|einsum)")
_SOFTMAX_OF_XLA, _LINES_OF_XLA = re.compile("triton_softmax"), 6
_PRODUCTS_OF_EACH = 1.5  # calls for each softmax: two, of which a cut recording may miss some


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = below(profile, named(profile, lambda name: name == _MATH))
    if not nodes.any():
        nodes = _by_hand(evidence) | _of_jax(evidence)
    yield from work_findings(evidence, nodes, _WORK)


def _by_hand(evidence: Evidence) -> BoolArray:
    """Softmax with at least two products beside it, in one call of one function."""
    profile, calls = evidence.profile, evidence.calls
    softmax, products = (named(profile, each.fullmatch) for each in (_SCORES, _PRODUCTS))
    found = np.zeros(len(calls), np.bool_)
    for inside in evidence.callers.by_function(softmax | products):
        n_products, n_softmax = (float(calls[inside[each[inside]]].sum()) for each in (products, softmax))
        found[inside] = n_products >= _PRODUCTS_OF_EACH * n_softmax > 0
    return below(profile, found)


def _of_jax(evidence: Evidence) -> BoolArray:
    """Kernels of a softmax, with products on at least two lines around it: [n_nodes]."""
    profile, tree = evidence.profile, evidence.profile.tree
    line_of, file_of = tree.frames.line[tree.frame], [tree.frames.file[frame] for frame in tree.frame.tolist()]
    softmax = np.flatnonzero(named(profile, _SOFTMAX_OF_XLA.search) & (evidence.gpu_ns > 0))
    products = np.flatnonzero(named(profile, "dot_general".__eq__) & (line_of > 0))
    found = np.zeros(len(tree), np.bool_)
    for node in softmax.tolist():
        place = place_of(profile, NodeId(node), OPERATIONS)
        near = [
            each
            for each in products.tolist()
            if file_of[each] == place.file and abs(int(line_of[each]) - place.line) <= _LINES_OF_XLA
        ]
        if len(near) >= 2:
            found[[node, *near]] = True
    return below(profile, found)


RULE = Rule(_find, "attention without flash attention", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
