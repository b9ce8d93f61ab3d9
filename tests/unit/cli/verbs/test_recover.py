from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bragg import formats
from bragg.formats.job.directory import read_job
from tests.support.captures import CaptureBuilder, small_capture
from tests.unit.cli.conftest import Bragg

CUT_OFF = (
    "what came after the last flush is missing (the program was killed, or was still running), so sums are too low"
)


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """A directory with a capture that was cut off, and an empty one."""
    directory = tmp_path / ".bragg-left"
    directory.mkdir()
    whole = small_capture()
    del whole.chunks[-1]
    whole.write(directory / "41.part")
    CaptureBuilder().write(directory / "42.part")
    return directory


def test_capture_becomes_a_profile_and_stays(bragg: Bragg, captures: Path) -> None:
    outcome = bragg("recover", captures / "41.part", "-o", "out.bragg")
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines()[0] == f"out.bragg: {CUT_OFF}"
    assert outcome.stderr.splitlines()[1].endswith("Next: bragg view out.bragg")
    assert formats.load("out.bragg").total("gpu_time") == 300
    assert len(outcome.stderr.splitlines()) == 2  # another capture lies beside it
    assert (captures / "41.part").exists()


def test_directory_becomes_a_profile_for_each_capture_that_holds_something(bragg: Bragg, captures: Path) -> None:
    outcome = bragg("recover", captures, "--json")
    values = json.loads(outcome.stdout)
    assert outcome.exit_code == 0
    assert values["profiles"] == [
        {
            "file": "recovered-41.bragg",
            "completeness": "incomplete: what came after the last flush is missing, sums are too low",
            "warnings": [CUT_OFF],
        }
    ]
    assert "error: " in outcome.stderr
    assert not Path("recovered-42.bragg").exists()


def test_a_directory_whose_captures_are_all_recovered_may_be_removed(bragg: Bragg, captures: Path) -> None:
    (captures / "42.part").unlink()
    assert bragg("recover").stderr.splitlines()[-1] == "No longer needed: rm -r .bragg-left"


def test_existing_profile_is_not_overwritten(bragg: Bragg, captures: Path) -> None:
    Path("out.bragg").write_text("precious")
    assert "Wrote out-2.bragg" in bragg("recover", captures / "41.part", "-o", "out.bragg").stderr
    assert Path("out.bragg").read_text() == "precious"


def test_output_may_be_a_directory(bragg: Bragg, captures: Path, tmp_path: Path) -> None:
    output = tmp_path / "profiles"
    output.mkdir()
    assert bragg("recover", captures, "-o", output).exit_code == 0
    assert [path.name for path in output.iterdir()] == ["recovered-41.bragg"]


@pytest.mark.parametrize("arguments", [[], ["."]])
def test_captures_of_this_directory_are_found(bragg: Bragg, captures: Path, arguments: list[str]) -> None:
    assert bragg("recover", *arguments).exit_code == 0
    assert [path.name for path in Path().glob("*.bragg")] == ["recovered-41.bragg"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "error"),
    [
        ([".bragg-left/42.part"], 7, "error: .bragg-left/42.part holds no measurement"),
        ([".bragg-left", "-o", "one.bragg"], 2, "error: there are 2 captures but one output"),
        (["nowhere.part"], 6, "error: cannot read nowhere.part"),
        ([".bragg-left/41.part", "-o", ".bragg-left/42.part/out.bragg"], 6, "error: cannot write"),
    ],
)
def test_what_cannot_be_recovered_is_said(
    bragg: Bragg, captures: Path, arguments: list[str], exit_code: int, error: str
) -> None:
    outcome = bragg("recover", *arguments)
    assert outcome.exit_code == exit_code
    assert outcome.stderr.startswith(error)
    assert list(Path().glob("*.bragg")) == []


@pytest.mark.parametrize("moment", ["bragg.formats.finish", "os.link"])
def test_killed_recovery_leaves_no_file_of_a_good_name(moment: str, captures: Path) -> None:
    """Killed while it reads the capture, and when the profile is complete but not named."""
    module, _, name = moment.rpartition(".")
    script = f"""
import os, signal, {module}
{module}.{name} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from bragg.cli.main import main
main(["recover", {str(captures / "41.part")!r}, "-o", "out.bragg"])
"""
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(Path().glob("*.bragg")) == []


def test_file_system_without_links_gets_a_profile_too(
    bragg: Bragg, captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    Path("out.bragg").write_text("precious")
    assert "Wrote out-2.bragg" in bragg("recover", captures / "41.part", "-o", "out.bragg").stderr
    assert formats.load("out-2.bragg").total("gpu_time") == 300
    assert list(Path().glob(".recover-*")) == []


@pytest.mark.parametrize(("source", "name"), [(".", "train.job"), ("left", "left")])
def test_captures_of_ranks_become_a_job(bragg: Bragg, tmp_path: Path, source: str, name: str) -> None:
    directory = tmp_path / source / ".bragg-x"
    directory.mkdir(parents=True)
    for rank in range(2):
        facts = {"rank": rank, "ranks": 2, "command": ["python", "train.py"], "job": {"run_id": "a"}}
        small_capture().meta(**facts).write(directory / f"{50 + rank}.part")
    arguments = [] if source == "." else [source]
    outcome = bragg("recover", *arguments)
    assert outcome.exit_code == 0
    assert f"Wrote {name}/ (2 ranks, " in outcome.stderr
    assert [rank.path.name for rank in read_job(Path(name)).ranks] == ["rank00000.bragg", "rank00001.bragg"]
    assert len(list(directory.iterdir())) == 2
