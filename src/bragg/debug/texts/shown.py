"""Arrays as text, for people who look into kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.model.table import Array


def array_text(data: Array, threshold: int, *, as_hex: bool = False) -> str:
    """Numbers as NumPy prints them; those of a masked array that are undefined as `--`.

    Args:
        data: Of any shape and type, or a single value.
        threshold: Of more elements only the first and last of each axis are shown.
        as_hex: Integers are shown so.
    """
    if not np.ma.is_masked(data):
        formatter: Any = {"int": hex} if as_hex else None
        shown: str = np.array2string(np.asarray(data), threshold=threshold, precision=6, formatter=formatter)
        return shown
    if as_hex and data.dtype.kind in "iu":
        data = np.ma.array(np.vectorize(hex, otypes=[object])(np.ma.getdata(data)), mask=np.ma.getmaskarray(data))
    with np.printoptions(threshold=threshold, precision=6):
        return str(data)
