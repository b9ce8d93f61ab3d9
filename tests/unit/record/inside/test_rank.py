from __future__ import annotations

import pytest

from bragg.record.inside.rank import find_rank


@pytest.mark.parametrize(
    "names",
    [
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ],
)
def test_rank_is_read_from_each_launcher(names: tuple[str, str]) -> None:
    assert find_rank({names[0]: "3", names[1]: "8"}) == (3, 8)


def test_job_of_one_process_has_no_rank() -> None:
    assert find_rank({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}) is None


def test_innermost_launcher_wins() -> None:
    assert find_rank({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "5", "WORLD_SIZE": "16"}) == (5, 16)


@pytest.mark.parametrize("environ", [{}, {"RANK": "0"}, {"RANK": "x", "WORLD_SIZE": "2"}])
def test_incomplete_variables_tell_no_rank(environ: dict[str, str]) -> None:
    assert find_rank(environ) is None
