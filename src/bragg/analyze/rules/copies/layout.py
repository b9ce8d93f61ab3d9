"""Kernels that turn NCHW tensors into NHWC and back around convolutions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "layout-conversions",
    "kernels that only convert between NCHW and NHWC",
    "model.to(memory_format=torch.channels_last), and the same for its input; in JAX dimension_numbers of NHWC",
    1.0,
    Confidence.PROVEN,
)
_CUDNN = re.compile(r"nchwToNhwc|nhwcToNchw", re.I)
# What XLA adds around a convolution has its name.
_XLA, _CONVOLUTION = re.compile(r"transpose"), "conv_general_dilated"


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    added = below(profile, named(profile, _CONVOLUTION.__eq__)) & named(profile, _XLA.search)
    yield from work_findings(evidence, named(profile, _CUDNN.search) | added, _WORK)


RULE = Rule(_find, "conversions between NCHW and NHWC around convolutions", (GPU_TIME,), (MUCH_GPU,), _WORK.change)
