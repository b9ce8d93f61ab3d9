"""What `bragg` says when it is called without a command."""

from __future__ import annotations

import os

import bragg
from bragg.cli.machine import nvidia_driver_version, nvidia_gpu_names
from bragg.record.backends import choose_backend

__all__ = ["welcome_lines"]


def welcome_lines() -> list[str]:
    """What bragg is, what this machine is, what to do next: twelve lines."""
    has_gpu = choose_backend("auto", os.environ).name != "cpu"
    return [
        f"bragg {bragg.__version__}: finds where the time of a GPU program goes, along the whole call path",
        f"this machine: {_gpu_text() if has_gpu else 'no GPU that bragg can measure'}",
        f"measured here: {'GPU kernels and copies, ' if has_gpu else ''}Python call paths, scopes, PyTorch operators",
        "",
        "  bragg demo               record and show a small program",
        "  bragg run train.py       record your own; also: -m module, pytest, -- any command",
        "  bragg view               show where the time went in the newest profile here",
        "  bragg export -f chrome   write it for another tool",
        "  bragg info, recover      what a profile holds; what a killed run left",
        "  bragg doctor             what can be recorded here, and why not more",
        "",
        "All options: bragg COMMAND --help. Viewing needs no GPU.",
    ]


def _gpu_text() -> str:
    names, version = nvidia_gpu_names(), nvidia_driver_version()
    gpus = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "a GPU"
    return f"{gpus}, driver {version}" if version else gpus
