"""Many draws of JAX from one distribution, by the text of the statements that ask for them."""

from __future__ import annotations

import ast

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.text_calls import argument, calls_at
from bragg.model import FrameKind
from bragg.model.table import BoolArray

WHAT = "each draw of categorical(..., shape=...) makes a random number for each class"
CHANGE = (
    "jax.random.choice(key, k, shape, p=p) makes one for each draw, and looks it up in the sums of the probabilities "
    "(cumsum, searchsorted)"
)
SAVED = 0.9  # of one pair, 131,072 draws of 8,192 classes: 98 % of the GPU time
_PRODUCTS = ("dot_general", "conv_general_dilated")  # of what makes the logits


def draws(evidence: Evidence) -> BoolArray:
    """What these draws run: [n_nodes]."""
    profile, tree = evidence.profile, evidence.profile.tree
    operations = (tree.kind == FrameKind.OPERATOR) & (tree.frames.line[tree.frame] > 0)
    operations &= ~named(profile, _PRODUCTS.__contains__)
    found = np.zeros(len(tree), np.bool_)
    for node in np.flatnonzero(operations).tolist():
        at = evidence.text.at(node)
        found[node] = at is not None and any(map(_is_of_many, calls_at(at[1], "categorical")))
    return below(profile, found)


def _is_of_many(call: ast.Call) -> bool:
    """Whether it makes several draws, each with all classes to choose from, of the same distribution."""
    shape, replaces = argument(call, "shape", 3), argument(call, "replace")
    is_library = ast.unparse(call.func).endswith("random.categorical")
    is_several = shape is not None and ast.unparse(shape) != "()" and not ast.unparse(shape).endswith("shape[:-1]")
    return is_library and is_several and (replaces is None or ast.unparse(replaces) == "True")
