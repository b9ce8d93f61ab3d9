from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bragg.errors import UsageError
from bragg.notebook.magic import recording_options, with_cell_names
from tests.support.profiles import profile_from_text


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


def test_a_zero_in_the_line_of_the_magic_is_a_choice() -> None:
    assert recording_options("--sample-interval 0") == {"output": "notebook.bragg", "sample_interval_us": 0}


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


def test_code_of_cells_is_named_as_the_notebook_numbers_them() -> None:
    profile = profile_from_text("root\n  /tmp/ipykernel_7/33.py:5@<module> host=1ms\n    a.py:2@work host=1ms")
    shell: Any = SimpleNamespace(compile=SimpleNamespace(_filename_map={"/tmp/ipykernel_7/33.py": 3}))
    assert set(with_cell_names(profile, shell).tree.frames.file) == {"", "In [3]", "a.py"}
    assert with_cell_names(profile, SimpleNamespace(compile=None)) is profile  # type: ignore[arg-type]
