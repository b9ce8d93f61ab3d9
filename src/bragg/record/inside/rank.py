"""The place of a process in a distributed job, as launchers tell it through the environment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_rank"]

# (rank, number of ranks) of torchrun, Open MPI, MPICH and Intel MPI, Slurm; innermost launcher first.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def find_rank(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Rank and number of ranks, or None for a process that is alone."""
    for rank, size in _VARIABLES:
        values = environ.get(rank, ""), environ.get(size, "")
        if all(value.isdecimal() for value in values) and int(values[1]) > 1:
            return int(values[0]), int(values[1])
    return None
