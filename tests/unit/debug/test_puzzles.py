# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Exercises say whether an answer is right, and what is wrong with it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug.puzzles as triton_viz
from bragg.errors import UsageError

X = np.arange(200, dtype="f4")


@triton.jit
def add(x_ptr, z_ptr, N0, B0: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    x = tl.load(x_ptr + i, i < N0)
    tl.store(z_ptr + i, x + 10.0, i < N0)


@triton.jit
def add_and_forget(x_ptr, z_ptr, N0, B0: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    x = tl.load(x_ptr + i, i < N0)
    tl.store(z_ptr + i, tl.where(i == 130, x, x + 10.0), i <= N0)


def run(kernel: Any, expected: Any) -> tuple[bool, Any]:
    z = np.zeros(200, "f4")
    return triton_viz.self_check(kernel, (4,), X, z, 200, B0=64, expected=expected), z


def test_a_right_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    is_right, z = run(add, X + 10)
    assert is_right
    assert z[199] == 209.0
    assert capsys.readouterr().out == "Correct: 4 programs, nothing found.\n"


def test_a_wrong_answer_names_the_element_who_wrote_it_and_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(add_and_forget, {"z_ptr": X + 10})[0]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wrong: z_ptr[130] is 130, not 140"
    assert lines[1].startswith("  last: = 130.0 by program (2, 0, 0) of add_and_forget at ")
    assert any(line.startswith("error: out-of-bounds in add_and_forget") for line in lines)
    assert lines[-1] == "Not yet."


def test_what_nobody_wrote_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    z = np.zeros(200, "f4")
    assert not triton_viz.self_check(add, (3,), X, z, 200, B0=64, expected=X + 10)
    assert capsys.readouterr().out.splitlines()[:2] == ["wrong: z_ptr[192] is 0, not 202", "  last: nothing wrote it"]


def test_a_tensor_that_the_kernel_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="add has no tensor 'y'"):
        run(add, {"y": X})


FACTOR = 10


@triton.jit
def add_with_what_only_the_interpreter_takes(x_ptr, z_ptr, N0, B0: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    plus = lambda x: tl.where(i < N0, x + FACTOR, 0)  # noqa: E731
    tl.store(z_ptr + i, plus(tl.load(x_ptr + i, i < N0)), i < N0)


def test_what_notebooks_import_from_the_interpreter_of_triton_viz_is_there() -> None:
    importlib.import_module("bragg.debug.puzzles.interpreter").record_builder.reset()


def test_launch_answers_whether_an_access_was_invalid_and_tells_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    triton_viz.clear()
    z = np.zeros(200, "f4")
    triton_viz.trace(add_with_what_only_the_interpreter_takes)[(4,)](X, z, 200, B0=64)
    assert z.tolist() == (X + 10).tolist()
    assert not triton_viz.launch()
    told = capsys.readouterr().out
    assert "Triton does not compile `lambda`" in told
    assert "Triton does not compile the global variable FACTOR" in told


def test_notebooks_for_triton_viz_run(capsys: pytest.CaptureFixture[str]) -> None:
    triton_viz.interpreter.record_builder.reset()
    z = np.zeros(200, "f4")
    triton_viz.trace(add)[lambda meta: (triton.cdiv(200, meta["B0"]),)](X, z, 200, B0=64)
    assert z[199] == 209.0
    assert not triton_viz.launch(share=False)
    assert capsys.readouterr().out.endswith("no findings in 1 launch of 4 programs\n")
    triton_viz.trace("sanitizer")(add_and_forget)[(4,)](X, z, 200, B0=64)
    assert triton_viz.launch()
    triton_viz.clear()
    assert not triton_viz.launch()
