"""The output of `bragg` without a command."""

from __future__ import annotations

import os

import bragg
from bragg.cli.machine import nvidia_driver_version, nvidia_gpu_names
from bragg.errors import BackendUnavailable

MEASURED_ON_HOST = "Python call paths, scopes, operators of PyTorch and JAX"
_MEASURED = {
    "cuda": f"GPU kernels and copies, {MEASURED_ON_HOST}",
    "cpu": MEASURED_ON_HOST,
    "": "nothing, bragg doctor says why; view profiles, debug kernels",
}


def welcome_lines() -> list[str]:
    """Lines that say what bragg is, what this machine can do, and what every verb is for."""
    backend = _backend()
    return [
        f"bragg {bragg.__version__}: finds where the time of a GPU program goes",
        f"this machine: {_gpu_text() if backend == 'cuda' else 'no GPU that bragg can measure'}",
        f"measured here: {_MEASURED[backend]}",
        "",
        "  bragg demo             record and show a small program",
        "  bragg run train.py     record your own; or -m module, pytest, -- any command",
        "  bragg analyze          why it is slow, what to change first",
        "  bragg view, diff       where the time went; what changed between two runs",
        "  bragg ranks            which rank of a job the others wait for, and why",
        "  bragg tally            how often each thing ran, of a process or of all ranks",
        "  bragg report, web      the same in a browser, as one HTML page or live",
        "  bragg source, plot     code with its times by line; the roofline of kernels",
        "  bragg check, debug     find bugs in Triton kernels; step through them",
        "  bragg export, info     write a profile for another tool; what it holds",
        "  bragg recover          make profiles of what a killed run left behind",
        "  bragg mcp              these commands for programs that call tools",
        "  bragg doctor           what can be recorded here",
        "",
        "All options: bragg COMMAND --help. Viewing needs no GPU.",
    ]


def _backend() -> str:
    """Name of the backend that would measure here; empty if the native core is missing."""
    try:
        from bragg.record.backends import choose_backend

        return choose_backend("auto", os.environ).name
    except BackendUnavailable:
        return ""


def _gpu_text() -> str:
    names, version = nvidia_gpu_names(), nvidia_driver_version()
    gpus = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "a GPU"
    return f"{gpus}, driver {version}" if version else gpus
