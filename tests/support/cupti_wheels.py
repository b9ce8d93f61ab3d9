"""Headers and libraries of CUPTI, out of the vendor's wheels, which are never part of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

__all__ = ["unpacked"]


def unpacked(requirement: str, wheels: Path, folder: str) -> Path:
    """A folder of the x86-64 wheel of a requirement, downloaded once per cache, on any machine.

    Args:
        requirement: Of pip.
        wheels: Where wheels are kept.
        folder: Its name: `include`, `lib`.
    """
    kept = wheels / requirement.replace("==", "-")
    if not any(kept.glob("*.whl")):
        _download(requirement, kept)
    (wheel,) = kept.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if f"/{folder}/" in name]
        archive.extractall(kept, names)
    return kept / names[0].partition(f"/{folder}/")[0] / folder


def _download(requirement: str, into: Path) -> None:
    platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_27", "_2_25", "2014", "1")]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
    result = subprocess.run([*command, "--dest", str(into), requirement], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return
    reason = f"no wheel to compare with: pip download {requirement} failed: {result.stderr.strip()[-300:]}"
    if os.environ.get("BRAGG_REQUIRE_ABI_CHECK") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
