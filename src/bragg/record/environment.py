"""The environment that makes every process of a run record itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from bragg.errors import UsageError
from bragg.record import variables
from bragg.record.backends import choose_backend, injection_variables_of
from bragg.record.config import RecordConfig

_INJECT_DIRECTORY = Path(__file__).parent / "inject"
_LOST = {
    variables.CUDA_INJECTION: "work on the GPU",
    variables.ITT_COLLECTOR: "operators that come through ITT",
    variables.NVTX_INJECTION: "NVTX ranges",
    variables.NCCL_PROFILER: "what NCCL tells of its collectives",
}
_MAX_PLUGIN_PATH = 254  # NCCL cuts off what is longer
_ON = ("1", "true", "yes", "on", "y")  # As Triton reads its own switches.
_OFF = ("0", "false", "no", "off", "n")


def recording_environment(
    environ: Mapping[str, str], config: RecordConfig, captures: Path, library: str
) -> tuple[dict[str, str], list[str]]:
    """An environment for the target.

    Args:
        environ: The environment of this process.
        config: What to record.
        captures: Directory for the captures.
        library: Path of the native core.

    Returns:
        The environment, and a note for each thing that cannot be recorded because another tool holds its variable.
    """
    options = {**config.options(), "rotate_interval_ms": round((config.rotate_s or 0) * 1000)}
    result = {**environ, variables.CAPTURE_DIR: str(captures), variables.OPTIONS: json.dumps(options)}
    result[variables.CORE_DIR] = str(Path(library).parent)
    if config.nvtx is not None:
        result[variables.NVTX] = str(int(config.nvtx))
    candidates = choose_backend(config.backend, environ).library_candidates(environ, sys.path)
    result[variables.CUPTI_PATHS] = os.pathsep.join(candidates)
    result["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_INJECT_DIRECTORY), environ.get("PYTHONPATH", "")]))
    return result, claim_injection_variables(result, config, library)


def claim_injection_variables(environ: MutableMapping[str, str], config: RecordConfig, library: str) -> list[str]:
    """Point the tool variables of a recording at the native core, except those that other tools hold.

    Returns:
        What is lost, for each that another tool holds.

    Raises:
        UsageError: `BRAGG_NVTX` is neither on nor off.
    """
    injected = injection_variables_of(config.backend)
    if not _wants_nvtx(environ, config):
        injected.remove(variables.NVTX_INJECTION)
        if environ.get(variables.NVTX_INJECTION) == library:  # from a recording around this one
            del environ[variables.NVTX_INJECTION]
    if config.nccl:
        injected.append(variables.NCCL_PROFILER)
    elif environ.get(variables.NCCL_PROFILER) == library:
        del environ[variables.NCCL_PROFILER]
    return [lost for lost in (_claim(environ, variable, library) for variable in injected) if lost]


def _wants_nvtx(environ: Mapping[str, str], config: RecordConfig) -> bool:
    if config.nvtx is not None:
        return config.nvtx
    own = environ.get(variables.NVTX, "").lower()
    if own and own not in (*_ON, *_OFF):
        raise UsageError(f"{variables.NVTX}={own} is neither on nor off", hint=f"Set {variables.NVTX}=0 or 1")
    return (own or environ.get(variables.TRITON_NVTX, "").lower() or "1") in _ON


def _claim(environ: MutableMapping[str, str], variable: str, library: str) -> str:
    """What cannot be recorded because a tool holds a variable; empty if the variable is ours now."""
    holder = environ.get(variable) or library
    if variable == variables.NCCL_PROFILER and holder == library and len(os.fsencode(library)) > _MAX_PLUGIN_PATH:
        return f"the path of {Path(library).name} is longer than NCCL reads: {_LOST[variable]} cannot be recorded"
    environ[variable] = holder
    return "" if holder == library else f"{variable} belongs to {holder}: {_LOST[variable]} cannot be recorded"
