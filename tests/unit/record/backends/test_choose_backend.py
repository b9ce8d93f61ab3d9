from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bragg.errors import BackendUnavailable, UsageError
from bragg.record import backends
from bragg.record.backends import choose_backend, cuda, injection_variables_of, require_backend
from bragg.record.backends.backend import Backend
from bragg.registry import Registry

CPU_INJECTIONS = ["INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH"]
GPU_INJECTIONS = ["CUDA_INJECTION64_PATH", *CPU_INJECTIONS]


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ())


def test_backend_is_chosen_by_name() -> None:
    assert [choose_backend(name, {}).name for name in ("cuda", "cpu")] == ["cuda", "cpu"]


@pytest.mark.usefixtures("no_device")
def test_auto_is_the_cpu_without_a_device() -> None:
    assert choose_backend("auto", {}).name == "cpu"
    assert choose_backend("cuda", {}).missing({}) == "there is no NVIDIA GPU: no device node of its driver"


def test_device_without_its_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ("/dev/null",))
    monkeypatch.setattr(cuda, "_DRIVER", "libcuda-that-is-not-there.so.1")
    assert choose_backend("cuda", {}).missing({}).startswith("the NVIDIA driver cannot be loaded: ")


def test_device_with_its_driver_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ("/dev/null",))
    monkeypatch.setattr(cuda, "_DRIVER", "libc.so.6")
    assert choose_backend("auto", {}).name == "cuda"


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize(("folder", "counts"), [("fakes", True), ("compat", False)])
def test_driver_on_the_library_path_stands_for_a_device(
    folder: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "_DRIVER", "libc.so.6")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "libc.so.6").touch()
    missing = choose_backend("cuda", {}).missing({"LD_LIBRARY_PATH": f"/nowhere:{tmp_path / folder}"})
    assert (missing == "") is counts


def test_doors_of_auto_are_those_of_every_backend() -> None:
    assert injection_variables_of("auto") == GPU_INJECTIONS
    assert injection_variables_of("cpu") == CPU_INJECTIONS


class Toy(Backend):
    """A backend of a test's own: this class and one row."""

    name = "toy"
    injection_variables = ("TOY_INJECTION",)
    sample_interval_us = 0

    def missing(self, environ: Mapping[str, str]) -> str:
        return "" if "TOY_DEVICE" in environ else "there is no toy"

    def hooks(self, settings: Mapping[str, str]) -> list[Any]:
        return []


@pytest.fixture
def with_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"toy": f"{__name__}:Toy", "cpu": "bragg.record.backends.cpu:Cpu"}
    monkeypatch.setattr(backends, "BACKENDS", Registry("backend", rows))


@pytest.mark.usefixtures("with_toy")
def test_a_backend_is_a_class_and_a_row() -> None:
    assert choose_backend("auto", {"TOY_DEVICE": "1"}).name == "toy"
    assert choose_backend("auto", {}).name == "cpu"
    assert injection_variables_of("auto") == ["TOY_INJECTION", *CPU_INJECTIONS]
    assert choose_backend("toy", {}).library_candidates({}, []) == []
    with pytest.raises(BackendUnavailable, match="there is no toy"):
        require_backend("toy", {})


def test_an_unknown_backend_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown backend 'rocm'"):
        choose_backend("rocm", {})
