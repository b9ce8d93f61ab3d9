"""Profiles with instruction samples, for tests of the source view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bragg.code.sass.listing import Instruction, format_listing
from bragg.code.source_map import Stage, source_name
from bragg.code.source_place import SourcePlace
from bragg.model import Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text

FILE = "/home/me/softmax.py"
LIBRARY = "/x/triton/language/standard.py"
TEXT = """\
@triton.jit
def scale(values):
    return values - tl.max(values)


@triton.jit
def softmax(out, x):
    values = tl.load(x)
    values = scale(values)
    tl.store(out, values)
"""
LOAD, CALL, STORE = (SourcePlace(FILE, line, 5, "softmax") for line in (8, 9, 10))
INNER = SourcePlace(FILE, 3, 12, "scale")
CODE = [
    Instruction(0x00, "LDG.E R1, [R2] ;", (LOAD,), 2),
    Instruction(0x10, "FMNMX R1, R1, R3 ;", (SourcePlace(LIBRARY, 191, 40), INNER, CALL), 4),
    Instruction(0x20, "STG.E [R4], R1 ;", (STORE,), 6),
]
KEY = "softmax/0123abcd"
TREE = """
root
  forward
    softmax<BLOCK=1024 w4 s3> 9us
      softmax.py:8@softmax #line
        +0x0 #line
      softmax.py:9@softmax #line
        softmax.py:3@scale #line
          +0x10 #line
      softmax.py:10@softmax #line
        +0x20 #line
    other<BLOCK=1 w4 s3> 5us
    softmax<BLOCK=64 w4 s3> 3us
"""


def sampled_profile(*, code: bool = True, samples: bool = True, instructions: Sequence[Instruction] = CODE) -> Profile:
    """A softmax whose load waits for memory, and with it what the profile knows of its code."""
    profile = profile_from_text(TREE.replace("softmax.py", FILE))
    name_of = [profile.tree.frames.name[frame] for frame in profile.tree.frame]
    metrics = dict(profile.metrics)
    if samples:
        for metric, values in {
            "num_samples": {"+0x0": 60, "+0x10": 30, "+0x20": 10},
            "num_stalled_samples": {"+0x0": 55, "+0x10": 20},
            "stalled_selected": {"+0x0": 5, "+0x10": 10, "+0x20": 10},
            "stalled_long_scoreboard": {"+0x0": 55, "+0x10": 5},
            "stalled_wait": {"+0x10": 15},
        }.items():
            own = np.array([values.get(name, 0) for name in name_of])
            metrics[metric] = Metric(metric, "1", MetricKind.INCLUSIVE, own)
    sources = {FILE: TEXT, source_name(KEY, Stage.SASS): format_listing(instructions)} if code else {}
    meta = {"attributes": {"softmax<BLOCK=1024 w4 s3>": {"code": KEY}}}
    return replace(profile, meta=meta, metrics=metrics, sources=sources)
