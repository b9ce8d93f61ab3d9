"""Code that is made and dropped: what ran is shown under its own name, whoever had its address before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bragg
from bragg import _core
from bragg.model import Profile

pytestmark = pytest.mark.skipif(not _core._walk_available(), reason="this interpreter cannot be walked (free-threaded)")

_COUNT = 50


def _places(profile: Profile) -> dict[str, tuple[str | None, str | None, int | None]]:
    """Of each scope the frame that it was entered in: name, file and line."""
    tree, frames = profile.tree, profile.tree.frames
    places = {}
    for node in range(1, len(tree)):
        caller = int(tree.frame[tree.parent[node]])
        places[tree.label(node)] = (frames.name[caller], frames.file[caller], int(frames.line[caller]))
    return places


def _made_and_dropped(number: int) -> int:
    """Run a function that is gone afterwards; its address."""
    source = f"def function_{number:03d}():\n    with bragg.scope('of {number:03d}'):\n        pass\n"
    names = {"bragg": bragg}
    exec(compile(source, f"file_{number:03d}.py", "exec"), names)
    function = names[f"function_{number:03d}"]
    function()
    names.clear()  # which the function refers to: it dies at once
    return id(function.__code__)


def test_functions_that_share_an_address_one_after_another_keep_their_names(tmp_path: Path) -> None:
    path = str(tmp_path / "run.bragg")
    with bragg.profile(path, backend="cpu", context="python"):
        addresses = {_made_and_dropped(number) for number in range(_COUNT)}
    assert len(addresses) < _COUNT  # else this says nothing
    places = _places(bragg.load(path))
    for number in range(_COUNT):
        name = f"{number:03d}"
        assert places[f"of {name}"] == (f"function_{name}", f"file_{name}.py", 2)


def test_cells_of_a_notebook_keep_their_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "run.bragg")
    names = {"bragg": bragg}
    with bragg.profile(path, backend="cpu", context="python"):
        for number in range(_COUNT):
            cell = "\n" * number + f"with bragg.scope('of {number:03d}'): pass\n"
            exec(compile(cell, f"<cell {number:03d}>", "exec"), names)
    for scope, place in _places(bragg.load(path)).items():
        if match := re.fullmatch(r"of (\d+)", scope):
            assert place == ("<module>", f"<cell {match[1]}>", int(match[1]) + 1)
