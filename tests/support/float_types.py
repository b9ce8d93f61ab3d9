"""Floats of Triton as NumPy has them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

TYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
}


def in_numpy(bits: Any, name: str) -> Any:
    """Bits as numbers of the type that they are of, if it is a float."""
    return bits.view(TYPES[name]) if name in TYPES else bits
