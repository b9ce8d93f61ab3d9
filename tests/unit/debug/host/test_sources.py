"""Texts of functions are found once, and again when their file has changed."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from bragg.debug.host.sources import Sources
from bragg.debug.switch import redirected, run_plainly


def function_of(path: Path, text: str) -> FunctionType:
    path.write_text(text)
    specification = importlib.util.spec_from_file_location("written", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    found: FunctionType = module.add
    return found


def test_the_text_is_that_of_inspect_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, add = Sources(), function_of(tmp_path / "a.py", "import os\n\ndef add(a, b):\n    return a + b\n\nx = 1\n")
    calls: list[Any] = []
    getblock = inspect.getblock
    monkeypatch.setattr(inspect, "getblock", lambda lines: calls.append(1) or getblock(lines))
    expected = (["def add(a, b):\n", "    return a + b\n"], 3)
    for _ in range(3):
        found = sources.getsourcelines(add)
        assert found == expected
        found[0].clear()
    assert len(calls) == 1
    assert sources.isfunction(add)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    sources, path = Sources(), tmp_path / "a.py"
    add = function_of(path, "def add(a, b):\n    return a + b\n")
    assert sources.getsourcelines(add)[0][1] == "    return a + b\n"
    path.write_text("def add(a, b):\n    return b  # and not a\n")
    linecache.clearcache()
    assert sources.getsourcelines(add)[0][1] == "    return b  # and not a\n"


def test_what_is_no_function_is_left_to_inspect() -> None:
    assert Sources().getsourcelines(Path) == inspect.getsourcelines(Path)


def test_tests_that_are_checked_one_by_one_share_the_texts() -> None:
    pytest.importorskip("triton")
    seen = []
    for _ in range(2):
        with redirected(run_plainly):
            seen.append(sys.modules["triton.runtime.jit"].inspect)
    assert seen[0] is seen[1]
    assert sys.modules["triton.runtime.jit"].inspect is inspect
