"""What the commands show of compiled kernels: the code is real, times are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from tests.support import slow_kernels
from tests.unit.cli.conftest import Bragg

triton = pytest.importorskip("triton")

from tests.support.compiled_variants import Variant, line_of, profile_of  # noqa: E402

SCALE = Variant(slow_kernels.scale, {"x": "*fp16", "out": "*fp16", "n": "i32", "factor": "fp32"}, {"BLOCK": 1024})


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """A kernel whose length is divisible by 16, and is not."""
    wide, narrow = tmp_path / "wide.bragg", tmp_path / "narrow.bragg"
    formats.export(profile_of(SCALE), "bragg", wide)
    formats.export(profile_of(replace(SCALE, unaligned=("n",))), "bragg", narrow)
    return wide, narrow


def test_a_difference_names_what_the_compiler_made_otherwise(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    (line,) = [line for line in bragg("diff", *sides).stdout.splitlines() if line.startswith("compiled otherwise")]
    assert "width of loads 16 B → 2 B, width of stores 16 B → 2 B" in line
    changes = json.loads(bragg("diff", *sides, "--json").stdout)["compiled"]
    loads = {"kernel": "scale", "fact": "width of loads", "unit": "B", "before": 16, "after": 2}
    assert loads in changes


def test_a_finding_stands_below_its_line_of_the_kernel(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    lines = bragg("source", sides[1]).stdout.splitlines()
    (below,) = [number for number, line in enumerate(lines) if "^ narrow-access: scale loads 2 B" in line]
    assert f" {line_of(slow_kernels.scale)}  " in lines[below - 1]


def test_sarif_has_the_line_of_the_kernel(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    (result,) = json.loads(bragg("analyze", sides[1], "--sarif").stdout)["runs"][0]["results"]
    assert result["ruleId"] == "narrow-access"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == line_of(slow_kernels.scale)
