from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bragg.cli.checks import system
from bragg.cli.checks.check import State, Surroundings


def on(root: Path, files: dict[str, str] | None = None, **environ: str) -> Surroundings:
    """A machine with these files below its root."""
    for name, text in (files or {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Surroundings(environ=environ, root=root)


def test_capabilities_are_named(tmp_path: Path) -> None:
    status = "Name:\tpython\nCapEff:\t0000000000280000\n"
    assert system.check_capabilities(on(tmp_path, {"proc/self/status": status})).found == "SYS_PTRACE, SYS_ADMIN"
    assert system.check_capabilities(on(tmp_path / "bare")).found.startswith("none")


def test_confinement_is_named(tmp_path: Path) -> None:
    status = "Seccomp:\t2\nNoNewPrivs:\t1\n"
    found = system.check_confinement(on(tmp_path, {"proc/self/status": status})).found
    assert found == "seccomp filter, no-new-privileges on"


def test_kernel_settings_are_read(tmp_path: Path) -> None:
    files = {"proc/sys/kernel/perf_event_paranoid": "4\n", "proc/sys/kernel/yama/ptrace_scope": "1\n"}
    surroundings = on(tmp_path, files)
    assert system.check_perf_events(surroundings).found.startswith("4;")
    assert system.check_ptrace(surroundings).found.startswith("1;")


@pytest.mark.parametrize(("options", "state"), [("rw,noexec", State.LIMITED), ("rw", State.OK)])
def test_temporary_directory_must_be_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, state: State
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    mounts = f"root / ext4 rw,noexec 0 0\nscratch {tmp_path / 'scratch'} tmpfs {options} 0 0\n"
    assert system.check_temporary_directory(on(tmp_path, {"proc/self/mounts": mounts})).state is state


def test_nearly_full_disk_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_ENOUGH_FREE_BYTES", 1 << 62)
    assert system.check_directory(on(tmp_path)).state is State.NOTE


def test_read_only_directory_is_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.os, "access", lambda path, mode: False)
    assert system.check_directory(on(tmp_path)).state is State.LIMITED


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":0"}, "over ssh: views are text"),
        ({"DISPLAY": ":0"}, ":0"),
        ({}, "none: views are text"),
    ],
)
def test_display_is_told(tmp_path: Path, environ: dict[str, str], found: str) -> None:
    assert system.check_display(on(tmp_path, **environ)).found == found


def test_scheduler_and_container_are_told(tmp_path: Path) -> None:
    surroundings = on(tmp_path, {".dockerenv": ""}, SLURM_JOB_ID="12", KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert system.check_cluster(surroundings).found == "Slurm job 12, Kubernetes, container"
    assert system.check_cluster(on(tmp_path / "bare")).found == "no scheduler, no container"
