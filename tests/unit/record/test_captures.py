from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bragg.record import captures
from bragg.record.captures import await_stragglers, list_captures, pid_of


def test_captures_come_main_process_first_and_last_program_first(tmp_path: Path) -> None:
    for name in ("7.part", "90.part", "90-2.part", "100.part", "90.part.new", "other"):
        (tmp_path / name).touch()
    listed = list_captures(tmp_path, main_pid=90)
    assert [path.name for path in listed] == ["90-2.part", "90.part", "7.part", "100.part"]
    assert [pid_of(path) for path in listed] == [90, 90, 7, 100]


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
