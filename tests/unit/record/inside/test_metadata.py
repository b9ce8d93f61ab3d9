from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bragg.record import RecordConfig
from bragg.record.inside.metadata import at_start, at_stop

OPTIONS = RecordConfig().options()


def test_start_tells_what_runs_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    meta = at_start("cpu", OPTIONS)
    assert meta["command"] == sys.orig_argv
    assert (meta["pid"], meta["cwd"], meta["host"]) == (os.getpid(), os.getcwd(), os.uname().nodename)  # noqa: PTH109
    assert (meta["backend"], meta["context"], meta["data"]) == ("cpu", "python", "tree")
    assert (meta["rank"], meta["ranks"]) == (1, 2)
    assert json.loads(json.dumps(meta)) == meta


def test_environment_holds_what_changes_speed_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.setenv("API_TOKEN", "secret")
    environment = at_start("cpu", OPTIONS)["environment"]
    assert environment["OMP_NUM_THREADS"] == "4"
    assert "API_TOKEN" not in environment


def test_stop_tells_versions_of_what_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="9.9"))
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    versions = at_stop()["versions"]
    assert versions["torch"] == "9.9"
    assert "jax" not in versions


def test_stop_tells_what_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, step = (
        SimpleNamespace(compile_id="0/0", co_name=name, co_filename="train.py", co_firstlineno=line)
        for name, line in (("loss", 4), ("step", 9))
    )
    compiler = SimpleNamespace(get_compilation_metrics=lambda: [loss, loss, step])
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", compiler)
    assert at_stop()["compiled_regions"] == {"0/0": [("loss", "train.py", 4), ("step", "train.py", 9)]}
    compiler.get_compilation_metrics = lambda: 1 / 0
    assert "compiled_regions" not in at_stop()


def test_start_and_stop_tell_how_long_the_main_thread_ran_and_had_no_core() -> None:
    before, after = at_start("cpu", OPTIONS)["scheduled_before"], at_stop()["scheduled"]
    assert 0 < before[0] <= after[0]
    assert 0 <= before[1] <= after[1]


# In a process that has no others yet.
RAN = """
import json, subprocess, sys, threading, time
from bragg.record import RecordConfig
from bragg.record.inside.metadata import at_start, at_stop

def ran():
    return at_stop().get("program_ran_ns", 0) - began

began, burnt = at_start("cpu", RecordConfig().options())["program_ran_before_ns"], time.process_time_ns()
thread = threading.Thread(target=lambda: sum(range(3_000_000)))
thread.start()
thread.join()
burnt = time.process_time_ns() - burnt
alone = ran()
child = subprocess.Popen([sys.executable, "-c", "sum(range(10_000_000)); input()"], stdin=subprocess.PIPE)
beside = at_stop().get("program_ran_ns")
child.communicate(b"\\n")
print(json.dumps([burnt, alone, beside, ran()]))
"""


def test_start_and_stop_tell_how_long_all_threads_ran_unless_processes_of_the_program_still_run() -> None:
    done = subprocess.run([sys.executable, "-c", RAN], check=True, capture_output=True, text=True)
    burnt, alone, beside, after = json.loads(done.stdout)
    assert burnt <= alone < burnt + 1_000_000_000
    assert beside is None
    assert after > alone + 50_000_000
