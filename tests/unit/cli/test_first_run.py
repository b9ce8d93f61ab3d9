"""What people try in their first minutes, and what then happens."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from bragg.errors import UsageError
from bragg.record.launcher.target import find_target
from tests.support.recordings import SAMPLE
from tests.unit.cli.conftest import Bragg


def test_recover_finds_the_captures_of_this_directory(bragg: Bragg, tmp_path: Path) -> None:
    (tmp_path / ".bragg-1a2b").mkdir()
    (tmp_path / ".bragg-1a2b" / "42.part").write_bytes(b"no capture")
    for arguments in (["recover"], ["recover", "."], ["recover", ".bragg-1a2b"]):
        outcome = bragg(*arguments)
        assert outcome.exit_code == 6
        assert "42.part" in outcome.stderr
        assert "Missing argument" not in outcome.stderr


def test_recover_says_where_it_looked(bragg: Bragg) -> None:
    outcome = bragg("recover")
    assert outcome.exit_code == 6
    assert outcome.stderr.startswith("error: there is no .part file in . or a .bragg-* directory in it\n")


def test_the_profile_of_a_killed_run_is_said_to_be_recoverable(bragg: Bragg, tmp_path: Path) -> None:
    (tmp_path / ".bragg-1a2b").mkdir()
    (tmp_path / ".bragg-1a2b" / "42.part").touch()
    outcome = bragg("view", "train.bragg")
    assert outcome.exit_code == 6
    assert outcome.stderr == (
        "error: there is no train.bragg\nhint: A run has left a capture here: bragg recover .bragg-1a2b\n"
    )


def test_a_capture_that_was_recovered_is_not_named_again(bragg: Bragg, tmp_path: Path) -> None:
    (tmp_path / ".bragg-1a2b").mkdir()
    (tmp_path / ".bragg-1a2b" / "42.part").touch()
    (tmp_path / "recovered-42.bragg").touch()
    assert "recover .bragg-1a2b" not in bragg("view", "train.bragg").stderr


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_run_that_continues_is_said_to_be_seen_so_far(bragg: Bragg, tmp_path: Path) -> None:
    (tmp_path / ".bragg-1a2b").mkdir()
    with (tmp_path / f".bragg-1a2b/{os.getpid()}.part").open("wb"):
        outcome = bragg("view")
    assert outcome.exit_code == 2
    seen = f"bragg view .bragg-1a2b/{os.getpid()}.part"
    assert outcome.stderr == f"error: there is no .bragg file here\nhint: A run is still running here. So far: {seen}\n"


def test_a_directory_stands_for_its_newest_profile(bragg: Bragg, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert bragg("view", "runs").stderr.startswith("error: there is no .bragg file in runs\n")
    shutil.copy(SAMPLE, tmp_path / "runs" / "train.bragg")
    assert bragg("view", "runs").stdout.startswith("runs/train.bragg: python3 train_gpt2.py --layers 2 --steps 7\n")


def test_plot_needs_no_kind(bragg: Bragg, profile_file: Path) -> None:
    with_kind, without = (bragg("plot", *kind, profile_file) for kind in (["roofline"], []))
    assert without.stderr == with_kind.stderr
    assert "is not 'roofline'" not in without.stderr
    assert "is one more" in bragg("plot", "roofline", profile_file, "other.bragg").stderr


def test_a_notebook_is_no_script(tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text('{"cells": []}')
    with pytest.raises(UsageError, match="is a notebook, which Python does not run") as error:
        find_target([str(notebook)])
    assert "nbconvert --to script" in error.value.hint


def test_a_script_of_another_language_is_not_run_by_python(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(UsageError, match="it is not executable") as error:
        find_target([str(script)])
    assert error.value.hint == f"chmod +x {script}"
    script.chmod(0o755)
    assert find_target([str(script)]).command == (str(script),)


def test_texts_that_python_runs_need_no_ending(tmp_path: Path) -> None:
    for first in ("#!/usr/bin/env python3", "import torch"):
        script = tmp_path / "train"
        script.write_text(f"{first}\n")
        assert find_target([str(script)]).command[1:] == (str(script),)


def test_a_grouping_that_was_not_recorded_says_what_to_record(bragg: Bragg, profile_file: Path) -> None:
    region, process = (bragg("view", profile_file, "--group-by", what) for what in ("region", "process"))
    assert region.exit_code == process.exit_code == 2
    assert region.stderr == (
        "error: no region of a training program was recorded\nhint: Record with: bragg run --regions all\n"
    )
    assert process.stderr.startswith("error: this profile is of one process\nhint: ")


def test_an_unknown_metric_names_the_nearest(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("view", profile_file, "-m", "gpu_tme")
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("error: this profile has no metric 'gpu_tme'\nhint: Nearest: gpu_time")


def test_a_tree_for_perfetto_says_what_to_record_or_which_format_shows_it(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("export", profile_file, "-f", "perfetto")
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith(
        "error: this profile has no timeline\nhint: Record it again with: bragg run --data"
    )
    assert "bragg export -f speedscope" in outcome.stderr


@pytest.mark.parametrize("verb", ["run", "check", "debug"])
def test_a_profile_is_no_program(bragg: Bragg, verb: str) -> None:
    pytest.importorskip("triton")
    Path("sample.bragg").write_bytes(b"PK")
    outcome = bragg(verb, "sample.bragg")
    assert outcome.exit_code == 2
    assert "sample.bragg is a profile, not a" in outcome.stderr


@pytest.mark.parametrize("verb", ["check", "debug"])
def test_without_a_program_the_debugger_says_where_to_name_it(bragg: Bragg, verb: str) -> None:
    pytest.importorskip("triton")
    outcome = bragg(verb)
    assert outcome.exit_code == 2
    assert outcome.stderr == "error: no program to run\nhint: Name it behind the options: kernel.py, or -m module\n"


@pytest.mark.parametrize("verb", ["check", "debug"])
def test_a_notebook_is_no_script_for_the_debugger(bragg: Bragg, verb: str) -> None:
    pytest.importorskip("triton")
    Path("train.ipynb").write_text("{}")
    outcome = bragg(verb, "train.ipynb")
    assert outcome.exit_code == 2
    assert "train.ipynb is a notebook, not a script" in outcome.stderr


@pytest.mark.parametrize("verb", ["check", "debug"])
def test_without_triton_the_environment_is_at_fault_and_not_the_command_line(
    bragg: Bragg, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "kernel.py").write_text("")
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    outcome = bragg(verb, str(tmp_path / "kernel.py"))
    assert outcome.exit_code == 4
    assert outcome.stderr.splitlines() == [
        "error: Triton is not installed",
        "hint: pip install triton, which has packages for Linux alone",
    ]
