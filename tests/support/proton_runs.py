"""Programs that use bragg.proton, each in a process of its own, and the files that they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import bragg.proton as proton
from bragg.proton.upstream import ONE_METADATA_STATE
from tests.support import fake_cuda

SUPPORT = Path(fake_cuda.__file__).parent
GPU = """
import bragg.proton as proton
from fake_cuda import FakeCuda
gpu = FakeCuda()
"""
CPU = "import bragg.proton as proton\n"


@dataclass(frozen=True)
class ProtonRun:
    """A program that has ended.

    Attributes:
        exit_code: Its exit status.
        output: What it printed.
        errors: Its standard error.
        directory: Where it ran.
    """

    exit_code: int
    output: str
    errors: str
    directory: Path

    def tree(self, name: str = "x.hatchet") -> dict[str, Any]:
        """The root of a tree."""
        root: dict[str, Any] = json.loads((self.directory / name).read_text())[0]
        return root

    def files(self) -> set[str]:
        return {path.name for path in self.directory.iterdir()} - {"program.py"}


def run_program(
    directory: Path, program: str, *, command: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
) -> ProtonRun:
    """Run a program with the environment of the tests.

    Args:
        directory: Where it runs.
        program: Its source.
        command: What runs it; its script and arguments follow. Python by default.
        environ: Changes of the environment.
    """
    script = directory / "program.py"
    script.write_text(dedent(program))
    ours = {"PYTHONPATH": str(SUPPORT), "TRITON_CACHE_DIR": str(directory.parent)}
    environment = {**os.environ, **ours, **(environ or {})}
    done = subprocess.run(
        [*(command or (sys.executable,)), str(script)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ProtonRun(done.returncode, done.stdout, done.stderr, directory)


def metadata_state(kernel: str, depth: int) -> list[str]:
    """Lines of the state in which the metadata of a kernel is computed; what follows is below `depth`."""
    lines = ["__proton_launch_metadata"] if ONE_METADATA_STATE else ["__proton_launch_metadata", kernel]
    return [f"{'  ' * (depth + below)}{line}" for below, line in enumerate(lines)]


def outline(node: dict[str, Any], depth: int = 0) -> list[str]:
    """A tree as lines of name and metrics, without what no two runs share."""
    hidden = ("time (ns)", "device_id", "device_type")
    shown = {key: value for key, value in node["metrics"].items() if key not in hidden}
    metrics = " ".join(f"{key}={value}" for key, value in sorted(shown.items()))
    lines = [f"{'  ' * depth}{node['frame']['name']} {metrics}".rstrip()]
    return lines + [line for child in node["children"] for line in outline(child, depth + 1)]


def start(name: str | None = "x", **options: Any) -> int:
    """Start a session of this process, without a GPU."""
    session = proton.start(name, backend="cpu", **options)
    assert session is not None
    return session


def tree(path: str = "x.hatchet") -> list[str]:
    """The outline of a tree that this process has written."""
    return outline(json.loads(Path(path).read_text())[0])
