from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from bragg.record.inside import rank
from bragg.record.inside.rank import find_place, find_rank, observe_place, observed_place


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


@pytest.fixture
def nothing_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "_observed", {})
    monkeypatch.delitem(sys.modules, "megatron.core.parallel_state", raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


TWO = {"RANK": "1", "WORLD_SIZE": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        (TWO, {"launcher": "environment"}),
        (
            {**TWO, "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_RESTART_COUNT": "2", **SLURM},
            {"launcher": "torchrun", "run_id": "a", "local_rank": 0, "restarts": 2},
        ),
        ({**TWO, "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0"}, {"launcher": "torchrun"}),
        (SLURM, {"launcher": "slurm", "run_id": "77.0", "local_rank": 1}),
        (
            {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "n", **SLURM},
            {"launcher": "mpi", "run_id": "n", "local_rank": 1},
        ),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "5"}, {"launcher": "mpi", "local_rank": 5}),
        ({"LOCAL_RANK": "1"}, {}),
    ],
)
def test_place_is_read_from_each_launcher(environ: dict[str, str], place: dict[str, object]) -> None:
    assert find_place(environ) == place


@pytest.mark.usefixtures("nothing_observed")
def test_framework_that_knows_the_rank_wins_over_the_launcher() -> None:
    assert observed_place({}) == {}
    assert observed_place(TWO) == {"rank": 1, "ranks": 2, "job": {"launcher": "environment"}}
    observe_place(rank=5, ranks=8, coordinates={"dp": 1}, gpus=[])
    assert observed_place(TWO) == {
        "rank": 5,
        "ranks": 8,
        "job": {"launcher": "environment", "coordinates": {"dp": 1}},
    }
    assert observed_place({})["job"]["launcher"] == "program"


@pytest.mark.usefixtures("nothing_observed")
def test_megatron_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    observe_place(rank=2, ranks=4)
    groups = SimpleNamespace(
        model_parallel_is_initialized=lambda: True,
        get_data_parallel_world_size=lambda: 2,
        get_data_parallel_rank=lambda: 1,
        get_tensor_model_parallel_world_size=lambda: 1,
        get_tensor_model_parallel_rank=lambda: 0,
    )
    monkeypatch.setitem(sys.modules, "megatron.core.parallel_state", groups)
    assert observed_place({}) == {
        "rank": 2,
        "ranks": 4,
        "job": {"launcher": "program", "coordinates": {"dp": 1}},
    }


@pytest.mark.usefixtures("nothing_observed")
@pytest.mark.parametrize(("is_initialized", "gpus"), [(True, ["GPU-1-2"]), (False, None)])
def test_gpu_that_pytorch_has_in_use_is_told(
    monkeypatch: pytest.MonkeyPatch, is_initialized: bool, gpus: list[str] | None
) -> None:
    cuda = SimpleNamespace(
        is_initialized=lambda: is_initialized,
        current_device=lambda: 3,
        get_device_properties=lambda device: SimpleNamespace(uuid={3: "1-2"}[device]),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert observed_place(TWO)["job"].get("gpus") == gpus
