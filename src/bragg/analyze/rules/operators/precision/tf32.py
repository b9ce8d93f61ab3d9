"""Products and convolutions in TF32, where 16 bits would do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "tf32-products",
    "matrix products and convolutions in TF32, and none in 16 bits",
    'torch.autocast("cuda", torch.bfloat16), or a model in bfloat16, if the precision is enough: twice the speed of '
    "TF32, and half of the bytes",
    0.45,
    Confidence.HEURISTIC,
    least_share=0.3,
)
# Of libraries; kernels of Triton have rules of their own.
_TF32 = re.compile(r"f32_?tf32|tf32_?f32|(?:tensorop|cutlass\w*)_(?:\w*_)?s1688")
_HALF = re.compile(r"bf16|f16f16|_h_|h(?:1688|16816|gemm)|nvjet_\w*[ht]s[ht]", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    products = named(evidence.profile, _TF32.search)
    if not evidence.gpu_ns[named(evidence.profile, _HALF.search) & ~products].any():
        yield from work_findings(evidence, products, _WORK)


RULE = Rule(
    _find, "matrix products in TF32 where no 16-bit ones are", (GPU_TIME,), (), _WORK.change, costs_precision=True
)
