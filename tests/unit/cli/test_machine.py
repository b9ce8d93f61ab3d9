from __future__ import annotations

from pathlib import Path

from bragg.cli.machine import nvidia_driver_version, nvidia_gpu_names


def test_machine_without_driver_has_nothing(tmp_path: Path) -> None:
    assert (nvidia_gpu_names(tmp_path), nvidia_driver_version(tmp_path)) == ([], "")


def test_gpus_are_in_bus_order(tmp_path: Path) -> None:
    for bus, model in (("0000:02:00.0", "B"), ("0000:01:00.0", "A")):
        (tmp_path / "gpus" / bus).mkdir(parents=True)
        (tmp_path / "gpus" / bus / "information").write_text(f"Model: \t {model} 80GB\nIRQ: 1\n")
    assert nvidia_gpu_names(tmp_path) == ["A 80GB", "B 80GB"]


def test_open_kernel_module_has_a_version_too(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n")
    assert nvidia_driver_version(tmp_path) == "570.86.15"
