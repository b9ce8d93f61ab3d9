"""What kind of work a kernel does, by its name: libraries and compilers tell it there."""

from __future__ import annotations

import re

import numpy as np

from bragg.model import CallTree, FrameKind
from bragg.model.table import Int64Array

PRODUCTS = "matrix products and convolutions"
_TRITON = "other Triton kernels"

# The first that fits decides: attention of cuDNN is made of matrix products, too.
_CLASSES = (
    ("communication", re.compile(r"nccl|all_?reduce|all_?gather|reduce_?scatter", re.I)),
    ("attention", re.compile(r"flash|fmha|sdpa|attention|attn", re.I)),
    ("optimizer", re.compile(r"adam|sgd_?impl|fused_optim", re.I)),
    (
        PRODUCTS,
        re.compile(r"gemm|nvjet|cutlass|cublas|wgrad|dgrad|fprop|conv|xmma|matmul|_mm_|_dot_", re.I),
    ),
    ("layout", re.compile(r"nchwToNhwc|nhwcToNchw|transpose|CatArray", re.I)),
    ("copies", re.compile(r"copy_kernel|direct_copy|memcpy", re.I)),
    ("normalization", re.compile(r"norm|softmax", re.I)),
    ("elementwise", re.compile(r"elementwise|multi_tensor_apply|triton_poi|loop_\w*fusion|FillFunctor", re.I)),
    ("reductions", re.compile(r"reduce|triton_red|triton_per|scan", re.I)),
    # Their names have warps and stages.
    (_TRITON, re.compile(r"<(.* )?w\d+ s\d+[ >]")),
)
_MEMORY, _OTHER = "copies", "other kernels"
UNNAMED = (_TRITON, _OTHER)
CLASSES = tuple(dict.fromkeys([*(name for name, _ in _CLASSES), _OTHER]))


def class_of(name: str) -> str:
    """One of `CLASSES`."""
    return next((found for found, pattern in _CLASSES if pattern.search(name)), _OTHER)


def classes_of_nodes(tree: CallTree) -> Int64Array:
    """The row of `CLASSES` of each node's kernel or copy, [n_nodes]; -1: it is neither."""
    found = np.full(len(tree.frames), -1, np.int64)
    for frame in np.flatnonzero(tree.frames.kind == FrameKind.KERNEL).tolist():
        found[frame] = CLASSES.index(class_of(tree.frames.name[frame]))
    found[tree.frames.kind == FrameKind.MEMORY] = CLASSES.index(_MEMORY)
    rows: Int64Array = found[tree.frame]
    return rows
