from __future__ import annotations

import pytest

from bragg.cli import welcome


def test_machine_with_gpus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gpu:
        name = "cuda"

    monkeypatch.setattr(welcome, "choose_backend", lambda name, environ: Gpu())
    monkeypatch.setattr(welcome, "nvidia_gpu_names", lambda: ["NVIDIA H200", "NVIDIA H200"])
    monkeypatch.setattr(welcome, "nvidia_driver_version", lambda: "580.65")
    lines = welcome.welcome_lines()
    assert lines[1] == "this machine: 2 x NVIDIA H200, driver 580.65"
    assert "GPU kernels" in lines[2]


def test_machine_without_gpu_is_told_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(welcome, "choose_backend", lambda name, environ: type("Cpu", (), {"name": "cpu"}))
    lines = welcome.welcome_lines()
    assert lines[1] == "this machine: no GPU that bragg can measure"
    assert "GPU" not in lines[2]
    assert len(lines) == 12
