from __future__ import annotations

from pathlib import Path

import pytest

from bragg.record.backends import cuda
from bragg.record.backends.cuda import Cuda


class Machine:
    """A file system with CUPTI libraries in it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.site = root / "site-packages"
        monkeypatch.setattr(cuda, "_TOOLKITS", str(root / "local"))
        monkeypatch.setattr(cuda, "_DRIVER_VERSION", str(root / "version"))

    def install(self, *names: str) -> None:
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def driver(self, release: str) -> None:
        text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {release}  Thu Jan 1 00:00:00 UTC 2026\n"
        (self.root / "version").write_text(text)

    def candidates(self, **environ: str) -> list[str]:
        found = Cuda().library_candidates(environ, ["", str(self.site)])
        return [str(Path(path).relative_to(self.root)) for path in found]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


TRITON = "site-packages/triton/backends/nvidia/lib/cupti/libcupti.so.12"
WHEEL_13 = "site-packages/nvidia/cu13/lib/libcupti.so.13"
WHEEL_12 = "site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"
TOOLKIT = "local/cuda-13.0/extras/CUPTI/lib64/libcupti.so.13"


def test_newest_comes_first_and_wheels_before_toolkits(machine: Machine) -> None:
    machine.install(TRITON, WHEEL_12, TOOLKIT, WHEEL_13)
    assert machine.candidates() == [WHEEL_13, TOOLKIT, WHEEL_12, TRITON]


def test_library_beyond_the_driver_comes_last(machine: Machine) -> None:
    machine.install(WHEEL_13, WHEEL_12)
    machine.driver("550.90.07")
    assert machine.candidates() == [WHEEL_12, WHEEL_13]


def test_driver_of_the_same_release_takes_the_newest(machine: Machine) -> None:
    machine.install(WHEEL_13, WHEEL_12)
    machine.driver("580.65.06")
    assert machine.candidates() == [WHEEL_13, WHEEL_12]


def test_chosen_directory_comes_before_all(machine: Machine) -> None:
    machine.install(WHEEL_13, "mine/libcupti.so.12")
    assert machine.candidates(BRAGG_CUPTI_DIR=str(machine.root / "mine")) == ["mine/libcupti.so.12", WHEEL_13]


def test_directory_that_proton_would_take_comes_next(machine: Machine) -> None:
    machine.install(WHEEL_13, "mine/libcupti.so.12", "proton/libcupti.so.13")
    chosen = {"BRAGG_CUPTI_DIR": str(machine.root / "mine"), "TRITON_CUPTI_LIB_PATH": str(machine.root / "proton")}
    assert machine.candidates(**chosen) == ["mine/libcupti.so.12", "proton/libcupti.so.13", WHEEL_13]


def test_inherited_candidates_come_last_and_once(machine: Machine) -> None:
    machine.install(WHEEL_13, "far/libcupti.so.12")
    inherited = f"{machine.root / WHEEL_13}:{machine.root / 'far/libcupti.so.12'}"
    assert machine.candidates(BRAGG_CUPTI_PATHS=inherited) == [WHEEL_13, "far/libcupti.so.12"]


def test_each_directory_gives_its_library_under_one_name(machine: Machine) -> None:
    folder = "site-packages/triton/backends/nvidia/lib/cupti"
    machine.install(f"{folder}/libcupti.so", f"{folder}/libcupti.so.12", f"{folder}/libcupti.so.2025.1.0")
    assert machine.candidates() == [f"{folder}/libcupti.so.12"]


def test_toolkit_named_by_the_environment_is_searched(machine: Machine) -> None:
    machine.install("opt/cuda/lib64/libcupti.so.12")
    assert machine.candidates(CUDA_HOME=str(machine.root / "opt/cuda")) == ["opt/cuda/lib64/libcupti.so.12"]
