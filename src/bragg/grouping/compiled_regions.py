"""Regions that `torch.compile` compiled, by the functions that they come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from bragg.model.tree import FrameKind, FrameTable

COMPILED_REGION = "Torch-Compiled Region: "
# Before a region: which compiled code fits the arguments, by its guards.
LOOKUP = "TorchDynamo Cache Lookup"
# What follows on the place of a function that continues after a graph break.
AFTER_BREAK = "after a graph break"
_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_(?P<line>\d+)")


def name_compiled_regions(frames: FrameTable, functions: Any) -> FrameTable:
    """Compiled regions with the function in front of the number: `Torch-Compiled Region: loss train.py:4 (0/0)`.

    A function that continues after a graph break says so.

    Args:
        frames: PyTorch numbers the regions in theirs.
        functions: By number, name, file and line of each function that had it, as `record/inside/metadata.py`
            writes them.
    """
    if not isinstance(functions, Mapping):
        return frames
    names = [
        _name(name, functions) if kind == FrameKind.OPERATOR and name.startswith(COMPILED_REGION) else name
        for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)
    ]
    return frames.replace(name=names)


def _name(name: str, functions: Mapping[str, Any]) -> str:
    number = name.removeprefix(COMPILED_REGION)
    told = functions.get(number)
    texts = [_text(function) for function in told] if isinstance(told, list) else []
    return f"{COMPILED_REGION}{' or '.join(texts)} ({number})" if texts and all(texts) else name


def _text(function: Any) -> str:
    """The function, its place, and whether it continues after a graph break; empty for what is not understood."""
    match function:
        case [str(name), str(file), int(line)]:
            resumed = _RESUMED.fullmatch(name)
            path = PurePath(file).name
            return f"{resumed['name']} {path}:{resumed['line']} {AFTER_BREAK}" if resumed else f"{name} {path}:{line}"
    return ""
