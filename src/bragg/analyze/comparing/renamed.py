"""Two scripts of which one is a copy of the other, with a change: their functions are the same ones."""

from __future__ import annotations

import os
from dataclasses import replace

from bragg.model import CallTree, FrameKind, Profile

_MODULE = "<module>"
_LEAST_SHARED = 0.5  # of the functions of the script that has fewer


def script_of(run: Profile) -> str:
    """The file of the script that ran, as its frames name it; empty: it was none, or has no frames."""
    word = next((word for word in run.run.command[1:] if not word.startswith("-")), "")
    file = os.path.normpath(os.path.join(str(run.meta.get("cwd", "")), word))  # noqa: PTH118 (of another machine)
    return file if word.endswith(".py") and file in run.tree.frames.file else ""


def with_script(run: Profile, script: str, like: Profile) -> Profile:
    """A run whose script is named as that of another one, if the two have most functions in common; else the same run.

    Args:
        run: Whose script may be a copy.
        script: File of the other script.
        like: A run of it.
    """
    own = script_of(run)
    if not own or not script or own == script or script in run.tree.frames.file:
        return run
    mine, theirs = _functions(run, own), _functions(like, script)
    if len(mine & theirs) < _LEAST_SHARED * min(len(mine), len(theirs)):
        return run
    tree, frames = run.tree, run.tree.frames
    renamed = frames.replace(file=[script if file == own else file for file in frames.file])
    sources = {script if file == own else file: text for file, text in run.sources.items()}
    return replace(run, tree=CallTree(tree.parent, tree.frame, renamed), sources=sources)


def _functions(run: Profile, script: str) -> set[str]:
    """Names of its functions; of a script without any, which it shares with all of its kind, its module's."""
    frames = run.tree.frames
    rows = zip(frames.kind.tolist(), frames.name, frames.file, strict=True)
    names = {name for kind, name, file in rows if kind == FrameKind.PYTHON and file == script}
    return names - {_MODULE} or names
