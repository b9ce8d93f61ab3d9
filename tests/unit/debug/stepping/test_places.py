"""Lines to stop at that kernels have, by the text of their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg.debug.stepping.places import kernels_of, require_line_of_kernel
from bragg.errors import UsageError

TEXT = """\
import triton

@triton.jit
def kernel(x):
    # Nothing.
    y = x + 1
    if y:
        # Twice.
        y = 2

@gluon.jit(do_not_specialize=["x"])
def other(x):
    return x

def host(x):
    @jit
    def inner(x):
        return x
    return kernel[(1,)](x)

def later(x):
    return x

made = triton.jit(later)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.parametrize("line", [6, 7, 8, 9, 13, 18, 22])
def test_lines_of_kernels_are_accepted(script: str, line: int) -> None:
    require_line_of_kernel(script, line, is_script=True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (0, "is no statement of a function"),
        (1, "is no statement of a function"),
        (4, "is no statement of a function"),
        (5, "is no statement of a function"),
        (24, "is no statement of a function"),
        (80, "is no statement of a function"),
        (17, "is in host, which is no kernel"),
        (19, "is in host, which is no kernel"),
    ],
)
def test_lines_that_no_kernel_has_are_refused_with_those_that_kernels_have(script: str, line: int, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        require_line_of_kernel(script, line, is_script=True)
    assert error.value.message == f"{script}:{line} {reason}"
    assert (
        error.value.hint
        == f"Kernels of {script}: kernel (lines 6 to 9), other (lines 13 to 13), inner (lines 18 to 18)"
    )


def test_another_file_may_make_a_kernel_of_any_function(script: str) -> None:
    require_line_of_kernel(script, 19, is_script=False)


def test_a_file_without_kernels_says_so(tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    path.write_text("import numpy\n")
    assert kernels_of(str(path)) == f"{path} has no function with @triton.jit; of another file: --break norm.py:55"


def test_a_file_that_python_refuses_is_left_to_python(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def (\n")
    require_line_of_kernel(str(path), 1, is_script=True)
