"""Threads without work of their own."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.analyze.rules.kernel import idle_threads
from bragg.model import Place
from bragg.model.kernels.compiled import Access, CompiledKernel


@pytest.mark.parametrize("warps", [None, 4])
def test_kernels_of_unknown_or_usual_warps_have_none(warps: int | None) -> None:
    access = Access(Place("a.py", 1), False, "x", False, "f32", 4, 512, 512, ("1",))
    kernel: Any = None  # what is judged is the code alone
    assert idle_threads._judge(kernel, CompiledKernel("k/1", num_warps=warps, accesses=(access,))) is None
