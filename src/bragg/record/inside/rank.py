"""The place of a process in a distributed job, as launchers tell it through the environment and frameworks say."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


# Rank and number of ranks of torchrun, Open MPI, MPICH and Intel MPI, Slurm; innermost launcher first. Slurm is last:
# `srun torchrun` gives one to each node.
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "torchrun"),
    ("RANK", "environment"),
    ("OMPI_COMM_WORLD_RANK", "mpi"),
    ("PMI_RANK", "mpi"),
    ("SLURM_PROCID", "slurm"),
)
# Of any launcher, the innermost first.
_LOCAL_RANKS = (
    *("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"),
    "SLURM_LOCALID",
)
_RUN_IDS = (
    *("TORCHELASTIC_RUN_ID", "PALS_APID", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "I_MPI_HYDRA_UUID", "PMIX_NAMESPACE"),
    "SLURM_JOB_ID",
)
_UNNAMED_RUN = "none"  # of torchrun, which was given no name
# Sizes of groups and ranks in them, as Megatron names them.
_MEGATRON = {
    "dp": "data_parallel",
    "tp": "tensor_model_parallel",
    "pp": "pipeline_model_parallel",
    "cp": "context_parallel",
    "ep": "expert_model_parallel",
}
_BOOT = "/proc/sys/kernel/random/boot_id"
_observed: dict[str, Any] = {}


def find_rank(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Rank and number of ranks, or None for a process that is alone."""
    for rank, size in _RANKS:
        values = environ.get(rank, ""), environ.get(size, "")
        if all(value.isdecimal() for value in values) and int(values[1]) > 1:
            return int(values[0]), int(values[1])
    return None


def find_place(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says of a rank beside its number: launcher, run id, local rank, restarts of the job."""
    if find_rank(environ) is None:
        return {}
    local_ranks = (_number(environ, name) for name in _LOCAL_RANKS)
    found = {
        "launcher": next(name for variable, name in _LAUNCHERS if variable in environ),
        "run_id": _run_id(environ),
        "local_rank": next((rank for rank in local_ranks if rank is not None), None),
        "restarts": _number(environ, "TORCHELASTIC_RESTART_COUNT") or None,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def observe_place(**found: Any) -> None:
    """Keep what a framework said of the place: `rank`, `ranks`, `coordinates`; it is asked again at the end."""
    _observed.update(found)


def observed_place(environ: Mapping[str, str]) -> dict[str, Any]:
    """What frameworks said of the place, as facts of the recording: `rank`, `ranks`, `job`; what they said last counts.

    Args:
        environ: Tells the rest.
    """
    for ask in (_ask_torch, _ask_megatron):
        _observed.update(ask())
    rank, ranks = find_rank(environ) or (None, None)
    rank, ranks = _observed.get("rank", rank), _observed.get("ranks", ranks)
    if rank is None or (ranks or 0) < 2:
        return {}
    place = {"launcher": "program", **find_place(environ)}
    place.update({name: _observed[name] for name in ("coordinates", "gpus") if _observed.get(name)})
    return {"rank": rank, "ranks": ranks, "job": place}


def boot_id() -> str:
    """Which boot of which machine this is: processes that agree have one monotonic clock; empty: not known."""
    try:
        # `pathlib` would add 10 ms to the start of every recorded process.
        with open(_BOOT, encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def _run_id(environ: Mapping[str, str]) -> str:
    run_id = next((environ[name] for name in _RUN_IDS if environ.get(name, _UNNAMED_RUN) != _UNNAMED_RUN), "")
    if run_id and run_id == environ.get("SLURM_JOB_ID"):
        return ".".join(filter(None, [run_id, environ.get("SLURM_STEP_ID", "")]))
    return run_id


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isdecimal() else None


def _ask_torch() -> dict[str, Any]:
    """UUID of PyTorch's current GPU, if it has one in use."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return {}
    uuid = getattr(cuda.get_device_properties(cuda.current_device()), "uuid", None)
    return {"gpus": [f"GPU-{uuid}"]} if uuid else {}


def _ask_megatron() -> dict[str, Any]:
    """Coordinates of Megatron's groups, while they are there."""
    module: Any = sys.modules.get("megatron.core.parallel_state")
    if module is None or not module.model_parallel_is_initialized():
        return {}
    axes = dict(_axes(lambda name: getattr(module, f"get_{name}", None)))
    return {"coordinates": axes} if axes else {}


def _axes(function: Callable[[str], Any]) -> Iterator[tuple[str, int]]:
    for axis, name in _MEGATRON.items():
        size, rank = function(f"{name}_world_size"), function(f"{name}_rank")
        if size is not None and rank is not None and size() > 1:
            yield axis, int(rank())
