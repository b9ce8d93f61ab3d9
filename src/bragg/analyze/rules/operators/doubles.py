"""Kernels of libraries that compute in 64 bits, which GPUs for machine learning do at a fraction of the speed."""

from __future__ import annotations

import re

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.work_rule import work_rule
from bragg.model import Confidence

__all__ = ["RULE"]

# Half of the bytes at least; products gain more, up to the 15 of TF32 beside FP64 on tensor cores.
_WORK = Work(
    "double-precision",
    "kernels of libraries in 64-bit floating point",
    "use float32: NumPy's arrays are float64 unless converted (torch.from_numpy(x).float()), JAX's with jax_enable_x64",
    0.7,
    Confidence.LIKELY,
    least_share=0.05,
)
_DOUBLE = re.compile(
    r"\bdouble\b|dgemm|_d884|f64f64_f64f64|f64gemm|_f64(?:_|\b)|dsyrk|dtrsm"
    # PyTorch's elementwise kernels as compilers write their names: functors of doubles, and lambdas that take them.
    r"|^_ZN2at6native.*(?:(?:Functor|_[a-z]+)Id+(?:E|NS)|EUld+E_)"
)

RULE = work_rule(_WORK, _DOUBLE, "kernels of libraries in 64-bit floating point")
