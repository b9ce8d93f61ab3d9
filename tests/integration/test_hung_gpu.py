"""A GPU that hangs keeps no program from ending, and what was measured before is in the profile."""

from __future__ import annotations

import signal

import pytest

from tests.support.fake_gpu_runs import START, Record, kernels, statistics

HANGS = """
import os, signal, sys, threading, time
gpu.launch_many("k", 100)
gpu.synchronize()
gpu.set_kernel_ns("endless", 1 << 60)
gpu.launch("endless", gpu.stream())
"""
# For so long a program waits for what does not come: `record` gives one up after 120 s.
PATIENCE_S = 300


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        (f"os.kill(os.getpid(), signal.SIGINT); time.sleep({PATIENCE_S})", -signal.SIGINT),
        (f"os.kill(os.getpid(), signal.SIGTERM); time.sleep({PATIENCE_S})", -signal.SIGTERM),
        # While the end of the program waits for the GPU.
        ("threading.Thread(target=lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()",
         -signal.SIGTERM),
    ],
)  # fmt: skip
def test_signal_ends_a_program_whose_gpu_hangs(
    record: Record, monkeypatch: pytest.MonkeyPatch, ending: str, exit_code: int
) -> None:
    monkeypatch.setenv("BRAGG_DRAIN_S", str(PATIENCE_S))
    run = record(HANGS + ending, START)
    assert run.exit_code == exit_code
    assert kernels(run.main)["k"] == 100


def test_program_that_leaves_a_hanging_gpu_ends_and_its_profile_says_what_is_missing(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAGG_DRAIN_S", "0.5")
    run = record(HANGS, START)
    assert run.exit_code == 0
    assert kernels(run.main)["k"] == 100
    told = statistics(run)
    assert told["missing_records"] + told["bad_timestamps"] == 1
    assert "incomplete: 1 " in run.talk


def test_ctrl_c_cuts_a_wait_for_the_gpu_short(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAGG_DRAIN_S", str(PATIENCE_S))
    run = record(
        HANGS
        + """
session = bragg.start("inner.bragg")
gpu.launch("k")
try:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    session.deactivate()  # as long as that
except KeyboardInterrupt:
    pass
os.kill(os.getpid(), signal.SIGTERM)
""",
        START,
    )
    assert run.exit_code == -signal.SIGTERM
