"""Kernels of published packages, where they are installed: no findings."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "liger_operations.py"


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton", "liger_kernel")),
    reason="needs PyTorch, Triton and liger-kernel",
)
def test_operations_of_liger_kernel_have_no_findings() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "bragg", "check", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no findings in" in done.stdout
