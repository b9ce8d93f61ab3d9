from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bragg.errors import UsageError
from bragg.record.launcher.process import run_child

PARENT = """
import os, sys
from bragg.record.launcher.process import run_child
ended = run_child([sys.executable, "-c", sys.argv[1]], os.environ)
print("exit", ended.exit_code, flush=True)
"""


def python(program: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program)]


def test_exit_status_is_the_child_s_own() -> None:
    assert run_child(python("raise SystemExit(7)"), os.environ).exit_code == 7


def test_signal_that_ends_the_child_is_negative() -> None:
    assert run_child(python("import os; os.kill(os.getpid(), 9)"), os.environ).exit_code == -signal.SIGKILL


def test_child_starts_with_no_signal_blocked_and_the_parent_s_mask_is_restored() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    program = "import signal; raise SystemExit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    assert run_child(python(program), os.environ).exit_code == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_child_gets_the_environment() -> None:
    program = "import os; raise SystemExit(int(os.environ['CODE']))"
    assert run_child(python(program), {**os.environ, "CODE": "5"}).exit_code == 5


def test_command_that_is_no_program_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot run .*: Permission denied"):
        run_child([str(tmp_path)], os.environ)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signal_to_the_parent_is_passed_on(number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = f"""
        import signal, time, pathlib
        signal.signal({int(number)}, lambda *_: exit(33))
        pathlib.Path({str(ready)!r}).touch()
        while True: time.sleep(0.01)  # a signal just before a long sleep would wait for its end
    """
    arguments = [sys.executable, "-c", PARENT, textwrap.dedent(child)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        while not ready.exists():
            time.sleep(0.01)
        parent.send_signal(number)
        out, _ = parent.communicate(timeout=60)
    assert out == "exit 33\n"


def test_a_signal_to_the_whole_job_that_ends_the_child_first_does_not_end_the_parent() -> None:
    script = "(sleep 0.05; kill -HUP $PPID) & kill -HUP $$"
    patient = f"""
        import os
        from bragg.record.launcher import process
        process._SAME_SIGNAL_S = 60.0
        print(process.run_child(["sh", "-c", {script!r}], os.environ).exit_code)
    """
    parent = subprocess.run(python(patient), capture_output=True, text=True, check=False, timeout=60)
    assert (parent.returncode, parent.stdout) == (0, f"{-signal.SIGHUP}\n")


def test_key_of_the_terminal_reaches_the_child_once(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = f"""
        import pathlib, signal, time
        caught = []
        signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        pathlib.Path({str(ready)!r}).touch()
        while not caught: time.sleep(0.01)
        time.sleep(0.3)
        raise SystemExit(len(caught))
    """
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", PARENT, textwrap.dedent(child)])
    while not ready.exists():
        time.sleep(0.01)
    os.write(terminal, b"\x03")
    shown = b""
    while b"exit" not in shown or not shown.endswith(b"\n"):
        shown += os.read(terminal, 100)
    os.waitpid(pid, 0)
    os.close(terminal)
    assert b"exit 1" in shown


def test_a_parent_that_was_stopped_for_a_while_passes_nothing_on(tmp_path: Path) -> None:
    ready, may_end = tmp_path / "ready", tmp_path / "may_end"
    child = f"""
        import pathlib, signal, time
        caught = []
        for number in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}}:
            signal.signal(number, lambda number, _: caught.append(number))
        pathlib.Path({str(ready)!r}).touch()
        while not pathlib.Path({str(may_end)!r}).exists(): time.sleep(0.01)
        raise SystemExit(len(caught))
    """
    arguments = [sys.executable, "-c", PARENT, textwrap.dedent(child)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        while not ready.exists():
            time.sleep(0.01)
        for _ in range(3):
            time.sleep(0.1)
            parent.send_signal(signal.SIGSTOP)
            time.sleep(0.4)
            parent.send_signal(signal.SIGCONT)
        may_end.touch()
        out, _ = parent.communicate(timeout=60)
    assert out == "exit 0\n"
