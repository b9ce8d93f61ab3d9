"""Triton kernels that are compiled for each value of a constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Profile
from tests.support.stepped import stepped

_LAUNCH = "scan.py:9@match"
_COMPILE = f"{_LAUNCH} > /lib/triton/compiler/compiler.py:80@compile"
_TEXT = """@triton.jit
def score(points, scores,
          N: tl.constexpr, BLOCK: tl.constexpr):
    pass



def match(points, scores):
    score[(8,)](points, scores,
                {}
"""


def ran(arguments: str) -> Profile:
    """Twenty sweeps, each of which compiles for 900 us and works 50 us."""
    lines = []
    for at in range(0, 20_000, 1000):
        lines.append(f"host {at}-{at + 900} {_COMPILE}")
        lines.append(f"host {at + 900}-{at + 904} {_LAUNCH} > cuLaunchKernel#gpu_api ->{at + 1}")
        lines.append(f"gpu {at + 907}-{at + 957} {_LAUNCH} > score<N={at} BLOCK=512 w4 s3>#kernel <-{at + 1}")
    return replace(stepped("\n".join(lines), 20_000, n_steps=8), sources={"scan.py": _TEXT.format(arguments)})


@pytest.mark.parametrize(
    ("arguments", "lines"), [("N=points.shape[0], BLOCK=512)", [10, 9, 3]), ("points.shape[0], 512)", [9, 3])]
)
def test_a_kernel_is_named_where_it_is_given_the_constant_that_changes(arguments: str, lines: list[int]) -> None:
    (finding,) = analysis(Evidence(ran(arguments)), ["kernel-recompilation"]).findings
    assert [finding.line, *(each.line for each in finding.places)] == lines


def test_what_the_compiler_took_is_not_other_code_of_the_host() -> None:
    evidence = Evidence(ran("N=points.shape[0], BLOCK=512)"))
    # Recorders without a timeline know of a wait the launch alone.
    waits = evidence.is_launch
    evidence.code_wait_ns = np.where(waits, 8 * 18_000_000.0, 0.0)
    evidence.pauses = np.where(waits, 8 * 20.0, 0.0)
    assert analysis(evidence, ["host-code"]).findings == []
