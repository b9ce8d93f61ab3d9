from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bragg.cli.checks.check import State, Surroundings
from bragg.cli.checks.nccl import check_nccl, check_nccl_plugin, nccl_state


def with_nccl(**told: Any) -> Surroundings:
    return Surroundings(environ={}, probe={"nccl": told})


def test_the_library_of_python_s_packages_tells_its_version(
    fakes_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAGG_FAKE_NCCL_VERSION", "22703")
    library = tmp_path / "nvidia/nccl/lib/libnccl.so.2"
    library.parent.mkdir(parents=True)
    shutil.copy(fakes_directory / library.name, library)
    assert nccl_state(["/nowhere", str(tmp_path)]) == {"path": str(library), "version": 22703}
    damaged = tmp_path / "other" / library.relative_to(tmp_path)
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no library")
    assert str(damaged) in nccl_state([str(tmp_path / "other")])["reason"]


@pytest.mark.parametrize(
    ("version", "state", "blocks"), [(22703, State.OK, ""), (22605, State.NOTE, "bragg run --nccl")]
)
def test_a_version_that_does_not_tell_times_is_noted(version: int, state: State, blocks: str) -> None:
    check = check_nccl(with_nccl(version=version, path="/n/libnccl.so.2"))
    assert (check.state, check.blocks) == (state, blocks)
    assert check.found == f"2.{version // 100 % 100}.{version % 100}, /n/libnccl.so.2"
    assert bool(check.fix) == bool(blocks)


def test_a_machine_without_nccl_lacks_nothing() -> None:
    check = check_nccl(with_nccl(reason="libnccl.so.2 was not found"))
    assert (check.state, check.found, check.blocks) == (State.NOTE, "libnccl.so.2 was not found", "")
    assert check_nccl(Surroundings(environ={})).found == "not tried"


@pytest.mark.parametrize(
    ("holder", "state", "found"),
    [
        ("", State.OK, "free"),
        ("/x/libbragg_core.so", State.OK, "bragg"),
        ("/opt/inspector.so", State.LIMITED, "belongs to /opt/inspector.so"),
        ("NONE", State.LIMITED, "no plug-in is allowed"),
    ],
)
def test_whose_plug_in_nccl_loads_is_told(holder: str, state: State, found: str) -> None:
    check = check_nccl_plugin(Surroundings(environ={"NCCL_PROFILER_PLUGIN": holder}))
    assert (check.state, check.found) == (state, found)
    assert check.blocks == ("bragg run --nccl" if state is State.LIMITED else "")
