"""The captures of a run: which processes they are of, and whether those still run."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

STRAGGLER_WAIT_S = 2.0  # Workers that outlive the main process mostly notice its end within a second.
_POLL_S = 0.02
# The last chunk, END: its magic, type, rows and size, before two checksums.
_END = struct.pack("<4sHHII", b"CHNK", 9, 0, 0, 0)
_CHUNK_HEADER_BYTES = 24


def has_ended(capture: Path) -> bool:
    """Whether the recording has stopped and everything of it was written."""
    with capture.open("rb") as file:
        if file.seek(0, os.SEEK_END) < _CHUNK_HEADER_BYTES:
            return False
        file.seek(-_CHUNK_HEADER_BYTES, os.SEEK_END)
        return file.read(len(_END)) == _END


def process_of(capture: Path) -> str:
    """Which program of which process a capture is of: `<pid>` or `<pid>-<program>`, the start of its name."""
    return capture.name.partition(".")[0]


def pid_of(capture: Path) -> int:
    """Process id in a capture's name."""
    return int(process_of(capture).partition("-")[0])


def phase_of(capture: Path) -> int:
    """Number of the phase that a capture is of: `<process>.part`, `<process>.part_1.part` and so on."""
    return int(capture.stem.partition(".part_")[2] or 0)


def list_captures(directory: Path, main_pid: int = 0) -> list[Path]:
    """The captures of a directory: the main process's first, then by process id.

    Of the programs that one process became by exec, the last comes first: the others led to it. Phases are in order.
    """

    def order(capture: Path) -> tuple[bool, int, int, int]:
        pid, _, program = process_of(capture).partition("-")
        return int(pid) != main_pid, int(pid), -int(program or 1), phase_of(capture)

    return sorted(directory.glob("*.part"), key=order)


def await_stragglers(directory: Path) -> list[str]:
    """Wait a moment for the recorded processes that still run.

    Returns:
        A note for each one that outlasts the wait.
    """
    deadline = time.monotonic() + STRAGGLER_WAIT_S
    while running := {pid for pid in map(pid_of, list_captures(directory)) if _runs(pid)}:
        if time.monotonic() > deadline:
            return [f"process {pid} still runs; its profile ends here" for pid in sorted(running)]
        time.sleep(_POLL_S)
    return []


def _runs(pid: int) -> bool:
    """Whether a process of this machine is neither gone nor a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
