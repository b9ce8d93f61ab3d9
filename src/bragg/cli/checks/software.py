"""Checks of Python, of bragg itself, and of the software it works with."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version

from bragg.cli.checks.check import Check, State, Surroundings, note, ok

_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 10), (3, 14)
# Triton 3.4 is the oldest that the hooks were tried with.
_OLDEST = {"triton": (3, 4), "torch": (2, 4)}
_PEERS = ("nsys", "ncu", "rocprofv3")


def check_python(surroundings: Surroundings) -> Check:
    """The interpreter is one that bragg is built for."""
    found = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    if platform.python_implementation() != "CPython":
        return Check("Python", State.BLOCKED, found, "recording", "Use CPython")
    if not _OLDEST_PYTHON <= sys.version_info[:2] <= _NEWEST_PYTHON:
        return note("Python", found, blocks="perhaps Python call paths", fix="Use Python 3.10 to 3.14")
    return ok("Python", found)


def check_libc(surroundings: Surroundings) -> Check:
    """The C library is one that the wheels are built for."""
    name, release = platform.libc_ver()
    if name != "glibc":
        return note("C library", name or "not glibc", blocks="the wheels of bragg", fix="Build bragg from source")
    return ok("C library", f"{name} {release}")


def check_core(surroundings: Surroundings) -> Check:
    """The native core can be loaded."""
    if "core" in surroundings.probe:
        return ok("native core", str(surroundings.probe["core"]))
    reason = str(surroundings.probe.get("error", "it was not tried"))
    fix = "Install bragg on Linux from a wheel for this Python, or from source"
    return Check("native core", State.BLOCKED, reason, "recording", fix)


def check_numpy(surroundings: Surroundings) -> Check:
    """Numpy is there: profiles are made of it."""
    found = _version("numpy")
    return ok("numpy", found) if found else Check("numpy", State.BLOCKED, "missing", "everything", "pip install numpy")


def check_torch(surroundings: Surroundings) -> Check:
    """PyTorch, for its operators, which come through ITT where its library cannot be observed."""
    check = _framework("PyTorch", "torch", "PyTorch operators in call paths")
    refusal = surroundings.probe.get("torch_operators")
    if refusal is None or check.state is not State.OK:
        return check
    if not refusal:
        return ok("PyTorch", f"{check.found}, whose operators can be observed")
    found = f"{check.found}, whose operators come through ITT: {refusal}"
    return note("PyTorch", found, blocks="operators of PyTorch at little cost")


def check_triton(surroundings: Surroundings) -> Check:
    """Triton, for its kernels."""
    return _framework("Triton", "triton", "Triton programs")


def check_jax(surroundings: Surroundings) -> Check:
    """JAX, for its operators and compilations."""
    return _framework("JAX", "jax", "JAX programs")


def check_peers(surroundings: Surroundings) -> Check:
    """Other profilers, which take turns with bragg on the GPU."""
    found = [name for name in _PEERS if shutil.which(name, path=surroundings.environ.get("PATH"))]
    return ok("other profilers", f"{', '.join(found)}: not at the same time as bragg" if found else "none installed")


def _framework(name: str, package: str, needed_for: str) -> Check:
    found = _version(package)
    if not found:
        return note(name, "not installed", blocks=needed_for)
    oldest = _OLDEST.get(package, (0, 0))
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers < oldest:
        wanted = ".".join(map(str, oldest))
        return note(
            name, f"{found}, not tried with bragg", blocks=f"perhaps {needed_for}", fix=f"Use {wanted} or later"
        )
    return ok(name, found)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


CHECKS = (
    check_python,
    check_libc,
    check_core,
    check_numpy,
    check_torch,
    check_triton,
    check_jax,
    check_peers,
)
