from __future__ import annotations

import re

import pytest

from bragg.cli import welcome
from bragg.cli.verbs import VERBS
from bragg.errors import BackendUnavailable
from bragg.record import backends


def lines_with(monkeypatch: pytest.MonkeyPatch, backend: str) -> list[str]:
    monkeypatch.setattr(backends, "choose_backend", lambda name, environ: type("Backend", (), {"name": backend}))
    return welcome.welcome_lines()


def test_machine_with_gpus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(welcome, "nvidia_gpu_names", lambda: ["NVIDIA H200", "NVIDIA H200"])
    monkeypatch.setattr(welcome, "nvidia_driver_version", lambda: "580.65")
    lines = lines_with(monkeypatch, "cuda")
    assert lines[1] == "this machine: 2 x NVIDIA H200, driver 580.65"
    assert lines[2].startswith("measured here: GPU kernels")


def test_machine_without_gpu_is_told_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_with(monkeypatch, "cpu")
    assert lines[1] == "this machine: no GPU that bragg can measure"
    assert lines[2] == "measured here: Python call paths, scopes, operators of PyTorch and JAX"
    assert max(map(len, lines)) <= 80


def test_every_verb_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(VERBS) <= set(re.findall(r"[a-z]+", "\n".join(lines_with(monkeypatch, "cpu")[4:-2])))


def test_machine_without_the_core_can_still_show_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(name: str, environ: object) -> None:
        raise BackendUnavailable("no core")

    monkeypatch.setattr(backends, "choose_backend", unavailable)
    assert welcome.welcome_lines()[2] == "measured here: nothing, bragg doctor says why; view profiles, debug kernels"
