"""The GPU that kernels are checked for where nobody names one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.debug.host import machine_target


def nvml(capability: tuple[int, int] | None, calls: list[str]) -> SimpleNamespace:
    """NVML of a machine with one GPU, or with none."""

    def tell(_device: Any, major: Any, minor: Any) -> int:
        assert capability
        major._obj.value, minor._obj.value = capability
        return 0

    return SimpleNamespace(
        nvmlInit_v2=lambda: calls.append("init"),
        nvmlDeviceGetHandleByIndex_v2=lambda index, _handle: 0 if capability and index == 0 else 6,
        nvmlDeviceGetCudaComputeCapability=tell,
        nvmlShutdown=lambda: calls.append("shutdown"),
    )


@pytest.mark.parametrize(
    ("capability", "name"), [((9, 0), "sm_90"), ((10, 0), "sm_100"), ((12, 1), "sm_121"), (None, "")]
)
def test_nvml_names_the_first_gpu(capability: tuple[int, int] | None, name: str) -> None:
    calls: list[str] = []
    assert machine_target.nvidia_name(lambda: nvml(capability, calls)) == name
    assert calls == ["init", "shutdown"]


def test_a_machine_without_nvml_has_no_nvidia_gpu() -> None:
    def load() -> Any:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    assert machine_target.nvidia_name(load) == ""


def test_the_first_node_of_amd_that_is_a_gpu_has_a_name(tmp_path: Path) -> None:
    for number, version in enumerate((0, 90402, 110000)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
    assert machine_target.amd_name(tmp_path) == "gfx942"
    (tmp_path / "1" / "properties").write_text("gfx_target_version 90010\n")
    assert machine_target.amd_name(tmp_path) == "gfx90a"
    assert machine_target.amd_name(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("is_there", "capability", "name"), [(False, (8, 0), "sm_90"), (True, (8, 0), "sm_80"), (True, (99, 0), "any")]
)
def test_kernels_are_checked_for_the_gpu_of_the_machine(
    is_there: bool, capability: tuple[int, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_target, "has_gpu", lambda: is_there)
    monkeypatch.setattr(machine_target.ctypes, "CDLL", lambda path: nvml(capability, []))
    assert machine_target.machine_target.__wrapped__().name == name
