"""From sampled Triton kernels on the fake GPU to their annotated source, where nothing is left but the profile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bragg.code.source_map import Stage, code_of_kernels
from bragg.model import FrameKind
from tests.support.fake_gpu_runs import Record

pytest.importorskip("triton")

# Line numbers count.
START = """\
import bragg
import triton
import triton.language as tl
import triton_driver
from fake_cuda import FakeCuda
from triton_driver import Tensor

@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n, other=-float("inf"))
    shifted = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + columns, shifted / tl.sum(shifted, axis=0), mask=columns < n)

gpu = FakeCuda()
triton_driver.use(gpu)
with bragg.scope("model"):
    for _ in range(8): softmax[(64,)](Tensor(), Tensor(), 1024, 1000, BLOCK=1024)
gpu.synchronize()
"""
LOAD = START.splitlines().index(next(line for line in START.splitlines() if "tl.load" in line)) + 1
# A kernel of 2^20 ns on the fake's 4 multiprocessors has 2^10 samples at a period of 2^12, on 16 instructions.
SAMPLES = 8 << 10


@pytest.fixture
def elsewhere(record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profile of a sampled run, alone in a directory: source, compiler's cache and captures are gone."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set
    run = record("", START, sample="continuous", sample_period=12, KERNEL_NS=1 << 20, VARY_NS=0, CLOCK="real")
    assert "8,192 instruction samples (100.0 % exact)" in run.talk
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(tmp_path / "out.bragg", tmp_path / "elsewhere" / "moved.bragg")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "program.py").unlink()
    return Path(moved)


def bragg(verb: str, file: Path, *options: str) -> str:
    """What a verb writes, where no compiler and no disassembler are."""
    command = [sys.executable, "-m", "bragg", verb, file.name, *options]
    environ = {**os.environ, "PATH": "/nonexistent", "PYTHONPATH": ""}
    done = subprocess.run(
        command, cwd=file.parent, env=environ, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def hot_lines(file: Path, *options: str) -> list[dict[str, Any]]:
    """Lines with samples, from the JSON."""
    document = json.loads(bragg("source", file, "softmax", "--json", *options))
    assert document["missing"] is None
    return [line for section in document["sections"] for line in section["lines"] if line["samples"]]


def test_a_profile_alone_shows_each_text_with_percent_and_stall_reason(elsewhere: Path) -> None:
    source = bragg("source", elsewhere, "softmax")
    assert "softmax<BLOCK=1024 w4 s3 f32 !16:n>  8,192 samples, 75.0 % stalled" in source
    (load,) = [line for line in source.splitlines() if "tl.load" in line]
    assert load.split()[1] == "%"
    assert f" {LOAD}      values = tl.load(" in load
    assert re.search(r" (memory|barrier|math): \w+ \d+ %", load)
    for stage, operation in (("ttir", "tt.load"), ("ttgir", "tt.load"), ("ptx", "ld.global"), ("sass", "LDC")):
        text = bragg("source", elsewhere, "softmax", "--ir", stage)
        shown = [line for line in text.splitlines() if operation in line and " % " in line]
        assert shown, text
        assert any(group in line for line in shown for group in ("memory:", "barrier:", "math:", "issued"))


def test_the_samples_of_all_lines_are_those_of_the_run(elsewhere: Path) -> None:
    lines = hot_lines(elsewhere)
    assert sum(line["samples"] for line in lines) == SAMPLES
    instructions = hot_lines(elsewhere, "--ir", "sass")
    assert [line["number"] for line in instructions] == list(range(0, 256, 16))
    assert {line["samples"] for line in instructions} == {SAMPLES / 16}
    assert all(line["text"] for line in instructions)


def test_without_kernel_code_samples_have_lines_and_no_texts(record: Record) -> None:
    run = record("", START, "--no-kernel-code", sample="continuous", sample_period=12, KERNEL_NS=1 << 20, CLOCK="real")
    assert run.main.sources == {}
    tree = run.main.tree
    lines = {int(tree.frames.line[row]) for row in tree.frame[tree.kind == FrameKind.LINE].tolist()}
    assert LOAD in lines


def test_a_run_that_is_not_sampled_has_the_texts_too(record: Record) -> None:
    (code,) = code_of_kernels(record("", START).main.sources).values()
    assert list(code.texts) == list(Stage)


def test_the_tree_leads_to_lines_and_instructions(elsewhere: Path) -> None:
    rows = json.loads(bragg("view", elsewhere, "-m", "num_samples,stall_memory", "-i", f"program.py:{LOAD}", "--json"))
    names = [(row["kind"], row["name"]) for row in rows["rows"]]
    assert [kind for kind, _ in names[:4]] == ["root", "scope", "kernel", "line"]
    assert {name for _, name in names[4:]} < {f"+{offset:#x}" for offset in range(0, 256, 16)}
