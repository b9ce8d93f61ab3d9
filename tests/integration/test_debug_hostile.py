"""`bragg check` on programs that are wrong before a kernel begins: one message, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forked_bragg import forked_bragg

pytest.importorskip("triton")

_KERNEL = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def k(x, n, B: tl.constexpr = 4):
    tl.store(x + n + tl.arange(0, B), 1.0)

"""


_TUNED = """@triton.autotune([triton.Config({"B": 4})], key=["n"])
@triton.jit
def tuned(x, n, B: tl.constexpr):
    tl.store(x + n + tl.arange(0, B), 1.0)
"""
_CHOSEN = '@triton.heuristics({"B": lambda named: 4})\n' + _TUNED.split("\n", 1)[1]


def checked(launch: str, folder: Path) -> tuple[int, str]:
    script = folder / "program.py"
    script.write_text(_KERNEL + launch)
    done = forked_bragg("check", script)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("launch", "code", "said"),
    [
        ("k[(-1,)](np.zeros(4), 0)", 2, "hint: Count the tiles with triton.cdiv(n, BLOCK)"),
        ("k[(1,)](np.zeros(4))", 2, "hint: It takes: x, n, B"),
        ("k[(1,)](np.zeros(4, complex), 0)", 2, "hint: Pass it as another type: torch.view_as_real"),
        ("k[(1,)](np.zeros(4), 0.5)", 3, "fix: Convert the offset: .to(tl.int64)"),
        ("k[(1,)](np.zeros(100), 0, B=100)", 3, "fix: Take triton.next_power_of_2 of the extent"),
        ("k(np.zeros(4), 0)", 2, "program.py:10: k is called without a grid\nhint: Say how many programs run it: k["),
        (_TUNED + "tuned(np.zeros(4), 0)", 2, "tuned is called without a grid\nhint: Say how many programs run"),
        (_CHOSEN + "tuned(np.zeros(4), 0)", 2, "program.py:14: tuned is called without a grid"),
        ("k[(0,)](np.zeros(4), 0)", 7, "nothing was checked: no launch has a program"),
    ],
    ids=["negative", "missing", "complex", "float", "block", "no grid", "no grid, tuned", "no grid, chosen", "empty"],
)
def test_message_says_what_to_do(launch: str, code: int, said: str, tmp_path: Path) -> None:
    got, text = checked(launch, tmp_path)
    assert got == code, text
    assert said in text
    assert "Traceback" not in text
    assert "proven" not in text


def test_call_without_grid_can_be_caught_as_what_triton_raises(tmp_path: Path) -> None:
    got, text = checked("try:\n    k(np.zeros(4), 0)\nexcept RuntimeError:\n    k[(1,)](np.zeros(4), 0)\n", tmp_path)
    assert got == 0, text
    assert "in 1 launch of 1 program" in text


@pytest.mark.parametrize("around", [_TUNED, _CHOSEN], ids=["tuned", "chosen"])
def test_call_of_a_tuned_kernel_without_grid_can_be_caught_as_what_python_raises(around: str, tmp_path: Path) -> None:
    call = "try:\n    tuned(np.zeros(4), 0)\nexcept TypeError:\n    tuned[(1,)](np.zeros(4), 0)\n"
    got, text = checked(around + call, tmp_path)
    assert got == 0, text
    assert "of 1 program" in text


def test_nothing_was_checked_is_said_once(tmp_path: Path) -> None:
    got, text = checked("", tmp_path)
    assert got == 7, text
    assert text.count("nothing was checked") == 1
    assert text.startswith("no launches\n")


def test_results_that_a_child_process_leaves_unwritten(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(_KERNEL + "x = np.empty((3, 4))\nk[(1,)](x, 0)\nk[(1,)](x, 8)\n")
    got, text = checked(
        f"import subprocess, sys\nsubprocess.run([sys.executable, {str(child)!r}], check=True)", tmp_path
    )
    assert got == 3, text
    assert "4 of 12 elements of x are written by nobody" in text
