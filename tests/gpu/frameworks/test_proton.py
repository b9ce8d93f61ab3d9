"""Instruction samples by Proton's names, of Triton's kernels and others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cuda

PROGRAM = """
import torch, triton, triton.language as tl
import bragg.proton as proton

@triton.jit
def spin(x, y, size: tl.constexpr):
    offsets = tl.arange(0, size)
    for _ in range(1000):
        tl.store(y + offsets, tl.load(x + offsets))

proton.start("x", hook="triton", mode="pcsampling")
with proton.scope("init"):
    x = torch.ones(1 << 24, device="cuda")
    y = torch.zeros_like(x)
for launches in (1, 3):
    with proton.scope(f"launches {launches}"):
        for _ in range(launches):
            spin[(1,)](x, y, 1024, num_warps=4)
proton.finalize()
"""


def test_every_launch_is_sampled_from_the_first_one_on(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, timeout=120)
    root = json.loads((tmp_path / "x.hatchet").read_text())[0]
    init, one, three = root["children"]
    assert init["children"][0]["metrics"]["num_samples"] > 0
    lines = {line["frame"]["name"]: line["metrics"] for line in one["children"][0]["children"]}
    assert len(lines[f"{tmp_path / 'program.py'}:9@spin"]) == 20
    assert 2.5 < _samples(three) / _samples(one) < 3.5


def _samples(node: dict[str, Any]) -> int:
    return int(node["metrics"].get("num_samples", 0)) + sum(map(_samples, node["children"]))
