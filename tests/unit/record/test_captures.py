from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bragg.record import captures
from bragg.record.captures import await_stragglers, has_ended, list_captures, phase_of, pid_of, process_of


def test_captures_come_main_process_first_and_last_program_first(tmp_path: Path) -> None:
    for name in ("7.part", "90.part", "90-2.part", "100.part", "90.part.new", "other"):
        (tmp_path / name).touch()
    listed = list_captures(tmp_path, main_pid=90)
    assert [path.name for path in listed] == ["90-2.part", "90.part", "7.part", "100.part"]
    assert [pid_of(path) for path in listed] == [90, 90, 7, 100]


def test_phases_of_a_process_are_in_order(tmp_path: Path) -> None:
    for name in ("7.part_10.part", "7-2.part_1.part", "7.part_2.part", "7-2.part", "7.part"):
        (tmp_path / name).touch()
    listed = list_captures(tmp_path)
    assert [(process_of(path), phase_of(path)) for path in listed] == [
        ("7-2", 0),
        ("7-2", 1),
        ("7", 0),
        ("7", 2),
        ("7", 10),
    ]
    assert {pid_of(path) for path in listed} == {7}


def test_capture_has_ended_when_its_last_chunk_says_so(tmp_path: Path) -> None:
    capture = tmp_path / "1.part"
    end = b"CHNK" + (9).to_bytes(2, "little") + bytes(18)
    found = []
    for content in (b"", b"BRAGGCAP" + bytes(8), b"BRAGGCAP" + bytes(8) + end, b"BRAGGCAP" + bytes(8) + end + end[:20]):
        capture.write_bytes(content)
        found.append(has_ended(capture))
    assert found == [False, False, True, False]


def test_running_process_is_waited_for_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "STRAGGLER_WAIT_S", 0.05)
    (tmp_path / f"{os.getpid()}.part").touch()
    assert await_stragglers(tmp_path) == [f"process {os.getpid()} still runs; its profile ends here"]


def test_zombie_is_not_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (tmp_path / f"{child.pid}.part").touch()
        assert await_stragglers(tmp_path) == []
