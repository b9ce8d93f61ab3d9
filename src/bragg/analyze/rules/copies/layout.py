"""Kernels that turn NCHW tensors into NHWC and back around convolutions."""

from __future__ import annotations

import re

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.work_rule import work_rule
from bragg.model import Confidence

__all__ = ["RULE"]

_WORK = Work(
    "layout-conversions",
    "kernels that only convert between NCHW and NHWC",
    "model.to(memory_format=torch.channels_last), and the same for its input",
    1.0,
    Confidence.PROVEN,
)
_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw", re.I)

RULE = work_rule(_WORK, _CONVERTS, "conversions between NCHW and NHWC around convolutions")
