"""The extension module, handed what programs should not hand it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import json, sys, threading
from bragg import _core

def session(number=0, **options):
    wanted = {"backend": "cpu", "context": "python", "data": "tree", **options}
    return _core.Session(f"{sys.argv[1]}/{number}.part", json.dumps(wanted))
"""


def run(directory: Path, body: str) -> None:
    """Runs a program in a process of its own, which may crash."""
    done = subprocess.run(
        [sys.executable, "-c", START + body, str(directory)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_scope_may_be_entered_within_itself_however_often(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
recording, scope = session(), _core.Scope("again")
def nest(depth):
    if depth:
        with scope:
            nest(depth - 1)
nest(200)
assert _core.context_depth() == 0
recording.stop()
""",
    )


def test_sessions_that_sample_may_start_and_stop_on_many_threads(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
def record(number):
    for _ in range(40):
        session(number, sample_interval_us=100).stop()
threads = [threading.Thread(target=record, args=[number]) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
    )


def test_a_vector_has_the_elements_that_it_gives(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
class Promising(list):
    def __len__(self):
        return 1_000_000
recording = session()
with _core.Scope("a"):
    _core.add_vector(_core.metric("m"), Promising([1.0, 2.0]))
recording.stop()
""",
    )


def test_launch_metadata_may_change_while_it_is_read(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
from types import SimpleNamespace
class Value:
    def __del__(self):
        deaths.append(self)
deaths, seen = [], []
data = {"name": "kernel", "function": 2**40, "stream": 0, "other": Value()}
def convert(key, value):
    data.clear()
    return NotImplemented
hook = _core.LaunchHook(convert, lambda others: seen.append((list(others), len(deaths))), print)
recording = session()
hook(SimpleNamespace(data=data, extras=[]))
recording.stop()
assert seen == [(["other"], 0)], seen
""",
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("backend='gpu'", "ValueError: unknown backend: gpu"),
        ("sample_budget='much'", "ValueError: option sample_budget of a session must be a number in range: much"),
    ],
)
def test_options_of_a_session_are_checked(tmp_path: Path, options: str, error: str) -> None:
    with pytest.raises(AssertionError, match=error):
        run(tmp_path, f"session({options})")
