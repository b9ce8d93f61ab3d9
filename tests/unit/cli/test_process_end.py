from __future__ import annotations

import subprocess
import sys

import pytest

from bragg.cli.process_end import end_like


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code_is_passed_on(code: int) -> None:
    assert end_like(code) == code


@pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 15])
def test_signal_is_passed_on_after_everything_was_written(number: int) -> None:
    program = f"from bragg.cli.process_end import end_like; print('written'); end_like(-{number})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-number, "written\n")


def test_signal_that_does_not_end_a_process_becomes_the_code_of_shells() -> None:
    program = "import sys; from bragg.cli.process_end import end_like; sys.exit(end_like(-17))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 128 + 17
