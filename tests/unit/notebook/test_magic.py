from __future__ import annotations

import pytest

from bragg.errors import UsageError
from bragg.notebook.magic import recording_options


def test_options_are_those_of_the_command_line() -> None:
    line = "--data trace --context shadow --sample-interval 500 --no-nvtx -o 'my run.bragg' --force"
    assert recording_options(line) == {
        "output": "my run.bragg",
        "data": "trace",
        "context": "shadow",
        "sample_interval_us": 500,
        "nvtx": False,
        "force": True,
    }
    assert recording_options("") == {"output": "notebook.bragg"}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("--colour red", "No such option"),
        ("--data graph", "not one of 'tree', 'trace'"),
        ("--as-proton", "--as-proton means nothing in a cell"),
        ("-m pytest", "-m means nothing|no other program"),
        ("train.py", "no other program"),
        ("-o 'half", "No closing quotation"),
    ],
)
def test_what_means_nothing_in_a_cell_is_refused(line: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        recording_options(line)
