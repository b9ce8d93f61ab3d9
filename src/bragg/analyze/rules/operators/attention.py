"""Attention that writes the whole matrix of scores to memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.table import BoolArray

__all__ = ["RULE"]

_WORK = Work(
    "unfused-attention",
    "attention that writes its whole matrix of scores to memory",
    "torch.nn.functional.scaled_dot_product_attention in bfloat16 or float16, with is_causal instead of a mask",
    0.8,
    Confidence.LIKELY,
    is_launched=True,
)
_MATH = "aten::_scaled_dot_product_attention_math"
_SCORES = re.compile(r"aten::_?softmax|aten::_safe_softmax")
_FUNCTIONAL = re.compile(r"torch[/\\]nn[/\\]functional\.py$")
_PRODUCTS = re.compile(r"aten::(?:bmm|baddbmm|matmul|einsum)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = below(profile, named(profile, lambda name: name == _MATH))
    if not nodes.any():
        nodes = _by_hand(evidence)
    yield from work_findings(evidence, nodes, _WORK)


def _by_hand(evidence: Evidence) -> BoolArray:
    """Softmax with at least two products beside it, in one call of one function."""
    profile, tree = evidence.profile, evidence.profile.tree
    above = np.maximum(tree.parent, 0)
    is_wrapper = named(profile, "softmax".__eq__) & in_files(profile, _FUNCTIONAL)
    caller = np.where(is_wrapper[above], tree.parent[above], tree.parent)
    python = np.flatnonzero(tree.kind == FrameKind.PYTHON)
    # The line of a function is a node of its own: what one function calls has one grandparent and one name above it.
    key = np.zeros(len(tree), np.int64)
    names = {name: row for row, name in enumerate(dict.fromkeys(tree.frames.name))}
    name_of = np.array([names[name] for name in tree.frames.name], np.int64)[tree.frame]
    key[python] = (tree.parent[python].astype(np.int64) + 1) * len(names) + name_of[python] + 1
    function = np.where(caller >= 0, key[caller], 0)
    softmax = named(profile, _SCORES.fullmatch) & (function > 0)
    products = named(profile, _PRODUCTS.fullmatch) & (function > 0)
    calls, n = np.unique(function[products], return_counts=True)
    both = np.intersect1d(function[softmax], calls)
    n_products = np.array([int(n[calls == one].sum()) for one in both.tolist()], np.int64)
    return below(profile, (softmax | products) & np.isin(function, both[n_products >= 2]))


RULE = Rule(_find, "attention without flash attention", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
