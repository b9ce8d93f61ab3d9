"""Kernels of libraries that compute in 64 bits, which GPUs for machine learning do at a fraction of the speed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

# Half of the bytes at least; products gain more, up to the 15 of TF32 beside FP64 on tensor cores.
_WORK = Work(
    "double-precision",
    "kernels of libraries in 64-bit floating point",
    "float32: NumPy's arrays are float64 unless converted (torch.from_numpy(x).float()), JAX's with jax_enable_x64",
    0.7,
    Confidence.LIKELY,
    least_share=0.05,
)
_DOUBLE = re.compile(r"\bdouble\b|dgemm|_d884|f64f64_f64f64|f64gemm|_f64(?:_|\b)|dsyrk|dtrsm")


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, named(evidence.profile, _DOUBLE.search), _WORK)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "kernels of libraries in 64-bit floating point",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
)
