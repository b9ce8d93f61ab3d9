"""What becomes of kernels whose compiler ends, hangs or refuses."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.debug.compiled import launched_kernels
from bragg.debug.compiled.launched_kernels import CompiledLaunch, LaunchedKernels, _Kernel
from bragg.debug.targets import target_named

# Compiles `a`, prints something of its own, and dies at `b`.
COMPILER = """
import json, os, sys
print("a word of the compiler")
for job in json.load(open(sys.argv[1])):
    if job["name"] == "b":
        sys.stderr.write("LLVM ERROR: no\\n")
        sys.stderr.flush()
        os._exit(9)
    print(json.dumps({"key": job["name"] + "/" + str(job["target"][1]), "files": "x.json"}), flush=True)
"""


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> LaunchedKernels:
    def lowered(source: Any, options: dict[str, Any], target: Any) -> str:
        if source == "refused":
            raise ValueError("two types")
        return str(source)

    monkeypatch.setattr(launched_kernels, "tile_dialect", lowered)
    waiting = {name: _Kernel(name, "refused" if name == "r" else "module {}", {}) for name in "rabc"}
    return LaunchedKernels(target_named("sm_90"), {"BRAGG_CAPTURE_DIR": "/nowhere"}, _kernels=waiting)


def test_a_compiler_that_ends_costs_one_kernel(
    kernels: LaunchedKernels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "compiler.py"
    script.write_text(COMPILER)
    monkeypatch.setattr(launched_kernels, "_SCRIPT", script)
    assert kernels.compiled() == {
        "r": CompiledLaunch(error="ValueError: two types"),
        "a": CompiledLaunch("a/90", "x.json"),
        "b": CompiledLaunch(error="the compiler ended with 9: LLVM ERROR: no"),
        "c": CompiledLaunch("c/90", "x.json"),
    }


class Hanging:
    """A process that has told of one kernel, and is at the next one."""

    pid = 42

    def __init__(self, *_: Any, **options: Any) -> None:
        assert options["start_new_session"]

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        if timeout is not None:
            raise subprocess.TimeoutExpired("compiler", timeout)
        return b'{"key": "a/90", "files": "x.json"}\n{"key": "b', b""


def test_a_compiler_that_hangs_is_stopped_with_what_it_started(
    kernels: LaunchedKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[tuple[int, int]] = []
    monkeypatch.setattr(launched_kernels, "time", SimpleNamespace(monotonic=iter([0.0, 5.0, 200.0]).__next__))
    monkeypatch.setattr(subprocess, "Popen", Hanging)
    monkeypatch.setattr("os.killpg", lambda *killed: stopped.append(killed))
    found = kernels.compiled()
    assert {name: each.key for name, each in found.items()} == {"r": "", "a": "a/90", "b": "", "c": ""}
    assert stopped == [(42, signal.SIGKILL)]
    assert found["b"].error == "the compiler was stopped after 115 s"
    assert found["c"].error == "there was no time left: 120 s are for all kernels"
