from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bragg.cli.checks import gpu
from bragg.cli.checks.check import State, Surroundings

INFORMATION = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 99\n"
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:20:31 UTC 2025\n"


@pytest.fixture
def gpu_machine(tmp_path: Path) -> Path:
    """The root of a machine with a GPU."""
    driver = tmp_path / "proc/driver/nvidia"
    (driver / "gpus/0000:01:00.0").mkdir(parents=True)
    (driver / "gpus/0000:01:00.0/information").write_text(INFORMATION)
    (driver / "version").write_text(VERSION)
    return tmp_path


def on(root: Path, probe: dict[str, Any] | None = None, **environ: str) -> Surroundings:
    return Surroundings(environ=environ, root=root, probe=probe or {})


def test_gpu_and_driver_are_read_from_files(gpu_machine: Path) -> None:
    assert gpu.check_gpu(on(gpu_machine)).found == "NVIDIA H200"
    assert gpu.check_driver(on(gpu_machine)).found == "580.65.06"


def test_machine_without_gpu_is_only_a_note(tmp_path: Path) -> None:
    check = gpu.check_gpu(on(tmp_path))
    assert (check.state, check.blocks) == (State.NOTE, "GPU times")


def test_where_triton_kernels_are_executed_is_told(gpu_machine: Path, tmp_path: Path) -> None:
    assert "on the GPU" in gpu.check_interpreter(on(gpu_machine)).found
    check = gpu.check_interpreter(on(tmp_path / "elsewhere"))
    assert (check.state, check.blocks) == (State.NOTE, "")
    assert "bragg's interpreter on the CPU" in check.found


def test_attached_cupti_shows_its_version(gpu_machine: Path) -> None:
    probe = {"cuda": {"state": "attached", "cupti_version": 130001, "driver_version": 13000}}
    assert gpu.check_cupti(on(gpu_machine, probe)).found == "version 130001 with driver 13000"


def test_missing_cupti_matters_only_where_there_is_a_gpu(gpu_machine: Path, tmp_path: Path) -> None:
    assert gpu.check_cupti_library(on(gpu_machine)).state is State.LIMITED
    assert gpu.check_cupti_library(on(tmp_path / "elsewhere")).state is State.NOTE


def test_taken_subscription_says_who_holds_it(gpu_machine: Path) -> None:
    check = gpu.check_cupti(on(gpu_machine, {"cuda": {"state": "failed", "reason": "held by nsys"}}))
    assert (check.state, check.found) == (State.LIMITED, "held by nsys")


@pytest.mark.parametrize(("admin_only", "state"), [("1", State.NOTE), ("0", State.OK)])
def test_counters_for_administrators_are_noted(gpu_machine: Path, admin_only: str, state: State) -> None:
    (gpu_machine / "proc/driver/nvidia/params").write_text(f"ResmanDebugLevel: 4\nRmProfilingAdminOnly: {admin_only}\n")
    assert gpu.check_counters(on(gpu_machine)).state is state


@pytest.mark.parametrize(
    ("cuda", "admin_only", "state", "words"),
    [
        ({"state": "attached", "cupti_version": 130001}, "0", State.OK, "possible"),
        ({"state": "attached", "cupti_version": 23}, "0", State.NOTE, "older than 12.6"),
        ({"state": "attached", "cupti_version": 24}, "1", State.NOTE, "for administrators"),
        ({"state": "failed"}, "0", State.NOTE, "not tried"),
    ],
)
def test_exact_counters_need_a_new_cupti_and_permission(
    gpu_machine: Path, cuda: dict[str, Any], admin_only: str, state: State, words: str
) -> None:
    (gpu_machine / "proc/driver/nvidia/params").write_text(f"RmProfilingAdminOnly: {admin_only}\n")
    check = gpu.check_exact_counters(on(gpu_machine, {"cuda": cuda}))
    assert check.state is state
    assert words in check.found
    assert bool(check.fix) == (check.blocks != "")


@pytest.mark.parametrize(
    ("check", "variable"),
    [(gpu.check_cuda_injection, "CUDA_INJECTION64_PATH"), (gpu.check_itt_injection, "INTEL_LIBITTNOTIFY64")],
)
def test_variable_that_another_tool_holds_is_a_defect(check: Any, variable: str, tmp_path: Path) -> None:
    assert check(on(tmp_path, **{variable: "/opt/other.so"})).state is State.LIMITED
    assert check(on(tmp_path, **{variable: "/x/libbragg_core.so"})).state is State.OK
    assert check(on(tmp_path)).state is State.OK


def test_cupti_as_nvtx_tool_takes_the_only_subscription(tmp_path: Path) -> None:
    cupti = gpu.check_nvtx_injection(on(tmp_path, NVTX_INJECTION64_PATH="/c/libcupti.so.12"))
    other = gpu.check_nvtx_injection(on(tmp_path, NVTX_INJECTION64_PATH="/c/libother.so"))
    assert (cupti.state, cupti.blocks) == (State.LIMITED, "GPU times")
    assert (other.state, other.blocks) == (State.LIMITED, "NVTX ranges")
    for free in ("", "/c/libbragg_core.so"):
        assert gpu.check_nvtx_injection(on(tmp_path, NVTX_INJECTION64_PATH=free)).state is State.OK


def test_hidden_gpus_are_a_defect(gpu_machine: Path) -> None:
    assert gpu.check_visible_devices(on(gpu_machine, CUDA_VISIBLE_DEVICES="")).state is State.LIMITED
    assert gpu.check_visible_devices(on(gpu_machine, CUDA_VISIBLE_DEVICES="0,1")).state is State.OK


def test_contradicting_choices_of_amd_gpus_are_noted(tmp_path: Path) -> None:
    both = {"HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "1"}
    assert gpu.check_hip_devices(on(tmp_path, **both)).state is State.NOTE
    assert gpu.check_hip_devices(on(tmp_path, HIP_VISIBLE_DEVICES="0")).state is State.OK


def test_amd_gpu_is_noted(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    assert gpu.check_amd(on(tmp_path)).state is State.NOTE


@pytest.mark.parametrize(
    ("said", "state", "found", "fix"),
    [
        ({}, State.NOTE, "not tried", ""),
        ({"sampling": ""}, State.OK, "can be taken", ""),
        (
            {"sampling": "a MIG instance cannot: use a GPU that is not partitioned"},
            State.NOTE,
            "a MIG instance cannot",
            "use a GPU that is not partitioned",
        ),
    ],
)
def test_sampling_is_what_the_probe_found(
    tmp_path: Path, said: dict[str, str], state: State, found: str, fix: str
) -> None:
    check = gpu.check_sampling(on(tmp_path, said))
    assert (check.state, check.found, check.fix) == (state, found, fix)


def test_telemetry_is_what_nvml_answers(gpu_machine: Path, tmp_path: Path) -> None:
    assert gpu.check_telemetry(on(tmp_path / "none", {"nvml": {"driver": "580.1"}})).found == "NVML of driver 580.1"
    failed = {"nvml": {"reason": "nvmlInit_v2 failed with NVML error 9"}}
    check = gpu.check_telemetry(on(gpu_machine, failed))
    assert (check.found, check.blocks) == ("nvmlInit_v2 failed with NVML error 9", "bragg run --telemetry")
    assert "libnvidia-compute" in check.fix
    assert gpu.check_telemetry(on(tmp_path / "none", failed)).blocks == ""
