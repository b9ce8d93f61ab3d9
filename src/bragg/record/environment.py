"""The environment that makes every process of a run record itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from bragg.record import variables
from bragg.record.backends import choose_backend, doors_of
from bragg.record.config import RecordConfig

__all__ = ["claim_door", "recording_environment"]

_INJECT_DIRECTORY = Path(__file__).parent / "inject"
_LOST = {
    variables.CUDA_INJECTION: "work on the GPU",
    variables.ITT_COLLECTOR: "operators of PyTorch on the CPU",
}


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
        The environment, and a note for each thing that cannot be recorded because another tool holds its door.
    """
    result = {**environ, **config.variables(), variables.CAPTURE_DIR: str(captures)}
    result[variables.CORE_DIR] = str(Path(library).parent)
    if config.sample_interval_us is None:
        result.pop(variables.SAMPLE_US, None)
    candidates = choose_backend(config.backend, environ).cupti_candidates(environ, sys.path)
    result[variables.CUPTI_PATHS] = os.pathsep.join(candidates)
    result["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_INJECT_DIRECTORY), environ.get("PYTHONPATH", "")]))
    notes = [claim_door(result, door, library) for door in doors_of(config.backend)]
    return result, [note for note in notes if note]


def claim_door(environ: MutableMapping[str, str], door: str, library: str) -> str:
    """Point a tool variable at the native core unless another tool holds it.

    Returns:
        What is lost to the other tool; empty when the variable is ours.
    """
    holder = environ.get(door) or library
    environ[door] = holder
    return "" if holder == library else f"{door} belongs to {holder}: {_LOST[door]} cannot be recorded"
