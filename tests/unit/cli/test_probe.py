from __future__ import annotations

import sys

import pytest

from bragg.cli import probe
from bragg.cli.probe import ProbeProcess


def said_by(monkeypatch: pytest.MonkeyPatch, program: str, timeout_s: float = 30) -> dict[str, object]:
    """What a probe process of another program says."""
    real = probe.subprocess.Popen
    monkeypatch.setattr(
        probe.subprocess, "Popen", lambda command, **options: real([sys.executable, "-c", program], **options)
    )
    return ProbeProcess().result(timeout_s)


def test_core_and_candidates_of_this_machine_are_found() -> None:
    said = ProbeProcess().result()
    assert str(said["core"]).endswith(".so")
    assert isinstance(said["candidates"], list)


def test_steps_before_a_crash_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """print('{"core": "x"}', flush=True); import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"""
    assert said_by(monkeypatch, program) == {"core": "x", "error": "the process was ended by SIGSEGV"}


def test_exception_is_reported_by_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_by(monkeypatch, "raise ImportError('no core')") == {"error": "ImportError: no core"}


def test_hanging_driver_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_by(monkeypatch, "import time; time.sleep(60)", 0.2) == {"error": "no answer within 0.2 s"}
