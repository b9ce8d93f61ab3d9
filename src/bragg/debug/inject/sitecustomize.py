"""Runs first in every Python process that a checked program starts, so that its kernels are checked too.

The directory of this file leads PYTHONPATH. It leaves `sys.path`, so that the program sees the path it would see alone.
"""
# ruff: noqa: PTH100, PTH120
# Before the program has imported anything, `pathlib` would add 10 ms to its start.

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]

try:
    from bragg.debug import children

    children.start()
except Exception as error:  # noqa: BLE001 - another interpreter, which may have no bragg; the program continues
    if sys.stderr is not None:
        sys.stderr.write(f"bragg: process {os.getpid()} is not checked: {' '.join(f'{error}'.split())}\n")

_next = PathFinder.find_spec("sitecustomize", sys.path)
if _next is not None and _next.loader is not None:
    _module = sys.modules["sitecustomize"] = module_from_spec(_next)
    _next.loader.exec_module(_module)
