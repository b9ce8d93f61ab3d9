"""Programs that compile kernels in a process of their own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bragg.code.compiler_process import CompilerProcess, run_compiler

TELLS = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), sys.path]))"
HANGS = """
import os, time
print("begun", flush=True)
os.fork()
time.sleep(600)
"""


def script(directory: Path, text: str) -> Path:
    path = directory / "compiler.py"
    path.write_text(text)
    return path


def test_it_has_the_modules_of_this_process_and_is_not_recorded(tmp_path: Path) -> None:
    environ = {"BRAGG_CAPTURE_DIR": "/nowhere", "TRITON_CACHE_DIR": "/cache"}
    done = run_compiler(script(tmp_path, TELLS), ["a", "b"], environ, within_s=60)
    arguments, given, search = json.loads(done.output)
    assert (done.status, done.errors, arguments) == (0, "", ["a", "b"])
    assert not any(name.startswith("BRAGG_") for name in given)
    assert given["TRITON_CACHE_DIR"] == "/cache"
    assert set(filter(None, sys.path)) <= set(search)


@pytest.mark.parametrize(
    ("text", "status", "last_error"),
    [("import sys; sys.exit('a word\\nno such type')", 1, "no such type"), ("import os; os.abort()", -6, "")],
)
def test_why_it_failed_is_its_last_line(tmp_path: Path, text: str, status: int, last_error: str) -> None:
    done = run_compiler(script(tmp_path, text), [], os.environ, within_s=60)
    assert (done.status, done.last_error) == (status, last_error)


def test_one_that_hangs_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    # Its child holds both pipes: this would last as long as the child does.
    assert run_compiler(script(tmp_path, HANGS), [], os.environ, within_s=2) == CompilerProcess(None, "begun\n", "")
