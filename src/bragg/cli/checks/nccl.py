"""NCCL, which tells its profiler plug-in of collectives: where it is, its version, and whose plug-in it loads."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bragg.cli.checks.check import Check, State, Surroundings, note, ok
from bragg.model.meta.nccl import OLDEST_NCCL, nccl_version_text

_LIBRARY = "libnccl.so.2"
_IN_PACKAGES = Path("nvidia", "nccl", "lib", _LIBRARY)
_VARIABLE = "NCCL_PROFILER_PLUGIN"
_OPTION = "bragg run --nccl"


def nccl_state(search_path: Iterable[str] = ()) -> dict[str, Any]:
    """`version` as `ncclGetVersion` counts, and `path`; or `reason`. For a process of its own: a library may crash.

    Args:
        search_path: Directories of Python's packages, whose NCCL PyTorch and JAX use; empty: `sys.path`.
    """
    in_packages = [Path(folder, _IN_PACKAGES) for folder in search_path or sys.path]
    path = next((str(found) for found in in_packages if found.exists()), _LIBRARY)
    version = ctypes.c_int()
    try:
        result = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError) as error:
        return {"reason": str(error)}
    if result:
        return {"reason": f"ncclGetVersion failed with NCCL error {result}"}
    return {"path": path, "version": version.value}


def check_nccl(surroundings: Surroundings) -> Check:
    """NCCL is new enough to tell when collectives begin and end on the GPU."""
    nccl: Mapping[str, Any] = surroundings.probe.get("nccl", {})
    version = int(nccl.get("version", 0))
    if not version:
        return note("NCCL", str(nccl.get("reason") or "not tried"))
    found = f"{nccl_version_text(version)}, {nccl.get('path')}"
    if version < OLDEST_NCCL:
        return note("NCCL", found, blocks=_OPTION, fix=f"Use NCCL {nccl_version_text(OLDEST_NCCL)} or later")
    return ok("NCCL", found)


def check_nccl_plugin(surroundings: Surroundings) -> Check:
    """No other tool is the profiler plug-in of NCCL, which loads one; `none` forbids it to load any."""
    holder = surroundings.environ.get(_VARIABLE, "")
    if not holder or "libbragg_core" in holder:
        return ok(_VARIABLE, "bragg" if holder else "free")
    found = "no plug-in is allowed" if holder.lower() == "none" else f"belongs to {holder}"
    return Check(_VARIABLE, State.LIMITED, found, _OPTION, "Unset it")


CHECKS = (check_nccl, check_nccl_plugin)
