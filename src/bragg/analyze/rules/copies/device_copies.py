"""Copies within the memory of a GPU."""

from __future__ import annotations

import re

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.work_rule import work_rule
from bragg.model import Confidence

_WORK = Work(
    "device-copies",
    "copies within the memory of the GPU",
    "write results where they are needed: out=, a buffer that is large enough instead of cat() in each step, views "
    "instead of clone(), donate_argnums in JAX",
    1.0,
    Confidence.LIKELY,
    least_share=0.05,
)

# What PyTorch's cat and stack launch.
_COPIES = re.compile(r"^copy DtoD$|CatArrayBatchedCopy")

RULE = work_rule(_WORK, _COPIES, "copies within the memory of the GPU")
