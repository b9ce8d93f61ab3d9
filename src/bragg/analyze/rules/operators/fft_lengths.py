"""Fourier transforms of lengths that have large prime factors."""

from __future__ import annotations

import re

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.work_rule import work_rule
from bragg.model import Confidence

_WORK = Work(
    "fft-lengths",
    "Fourier transforms of a length with a large prime factor, which are computed as convolutions of twice the length",
    "pad, or cut, to a length whose factors are 2, 3, 5 and 7 (scipy.fft.next_fast_len)",
    0.7,
    Confidence.PROVEN,
)
RULE = work_rule(_WORK, re.compile("bluestein", re.I), "Fourier transforms of lengths with large prime factors")
