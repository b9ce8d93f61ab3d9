"""The command that ends `bragg check` stops at the finding that it shows first."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import bragg.debug
from bragg.cli.annotations.outcome import Outcome
from bragg.cli.findings_output import FindingsOutput
from bragg.formats.bragg import write
from tests.support.profiles import profile_from_text

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def row_sums(x, out, rows, columns, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * columns + i, mask=i < rows, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(values))


@triton.jit
def all_but_the_last(out, n, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 1.0, mask=i < n - 1)


def test_an_error_that_a_warning_precedes_is_stopped_at_by_its_program() -> None:
    with bragg.debug.check() as report:
        row_sums[(12,)](np.ones((12, 10), "f4"), np.zeros(12, "f4"), 12, 10, BLOCK=16)
    assert [(one.severity.name, min(one.programs)) for one in report] == [("ERROR", 11), ("WARNING", 0)]
    step = FindingsOutput().next_step(report, "sums.py")
    assert step == "bragg debug --break-on out-of-bounds --at-program 11,0,0 sums.py"


def test_what_the_end_of_the_program_tells_is_looked_at_in_its_line() -> None:
    with bragg.debug.check(only=["unwritten"]) as report:
        out = np.empty(1000, "f4")
        all_but_the_last[(1,)](out, 1000, BLOCK=1024)
    (finding,) = report
    place = os.path.relpath(Path(__file__))
    assert FindingsOutput().next_step(report, "last.py") == f"bragg debug --break {place}:{finding.line} last.py"


@pytest.mark.parametrize(("kernel", "is_warned"), [("all_but_the_last", False), ("other", True)])
def test_findings_go_into_the_profile_of_another_program_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kernel: str, is_warned: bool
) -> None:
    path = tmp_path / "run.bragg"
    write(profile_from_text(f"root\n  train.py:5@step\n    {kernel} 5us"), path)
    with bragg.debug.check() as report:
        all_but_the_last[(1,)](np.empty(16, "f4"), 16, BLOCK=16)
    FindingsOutput(profile=path).write(Outcome(report, tmp_path, ""), has_text=False)
    warning = f"warning: {path} has none of the kernels that were checked (all_but_the_last): is it of another program?"
    assert (warning in capsys.readouterr().err) is is_warned
