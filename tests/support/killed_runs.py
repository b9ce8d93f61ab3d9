"""Runs of which a process is killed at a random moment, and what must be left of them.

What was flushed is counted in the captures by a reader of its own: they are linked before the kill, so that they stay.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bragg import load
from tests.support import fake_cuda

__all__ = ["MODES", "Killed", "kill_at_random"]

# Who is killed; `finish`: the parent, about when it writes the profile.
MODES = ("target", "parent", "both", "finish", "recover")
_PROGRAM = """
import sys, threading, time
sys.path.append({support!r})
import bragg
from fake_cuda import FakeCuda
until = time.monotonic() + {seconds}
def work(thread):
    gpu, i = FakeCuda(), 0
    stream = gpu.stream()
    while time.monotonic() < until:
        i += 1
        with bragg.scope(f"s{{i % 50}}"), bragg.scope(f"t{{thread}}"): gpu.launch(f"k{{i % 30}}", stream)
threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
_METRICS = 5
_COUNTS = {"gpu_count", "host_count"}
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Killed:
    """What a round left.

    Attributes:
        flushed: Launches and scopes that were in the captures when the process was killed.
        recovered: Those in the profiles.
        damaged: Files with the name of a profile that cannot be read.
        talk: What was said last.
    """

    flushed: int
    recovered: int
    damaged: list[str]
    talk: str


def kill_at_random(mode: str, seed: int, directory: Path, fakes: Path) -> Killed:
    """One round: record a program, kill a process of it, recover what was left."""
    chance = random.Random(seed)
    directory.mkdir(parents=True)
    seconds = 0.4 if mode in ("finish", "recover") else 2.0
    program = directory / "program.py"
    program.write_text(_PROGRAM.format(support=str(Path(fake_cuda.__file__).parent), seconds=seconds))
    options = [f"--flush-interval={chance.choice([1, 20, 100, 1000])}", f"--data={chance.choice(['tree', 'trace'])}"]
    parent = _bragg(directory, fakes, "run", "--no-summary", "--backend=cuda", "-o", "t.bragg", *options, str(program))
    target = _child_of(parent)
    time.sleep(chance.uniform(0.5, 3.0) if mode == "finish" else chance.uniform(0.0, 2.0))
    links = [] if mode == "recover" else _link_captures(directory)
    for process, is_meant in ((target, mode in ("target", "both")), (parent.pid, mode in ("parent", "both", "finish"))):
        if is_meant and process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    if mode == "recover":  # the parent leaves no capture: it dies before it finishes
        links = _link_when_there(directory, chance)
        parent.kill()
    talk = _end_of(parent)
    _wait_for_end(target)
    kills_recover = mode in ("recover", "finish") or chance.random() < 0.3
    left = [str(path) for path in directory.glob(".bragg-*")]
    if left and kills_recover:
        recovering = _bragg(directory, fakes, "recover", *left)
        time.sleep(chance.uniform(0.1, 1.2))
        recovering.kill()
        talk = _end_of(recovering)
    if left:
        talk = _end_of(_bragg(directory, fakes, "recover", *left))
    counts, damaged = _profiles(directory)
    return Killed(sum(map(_flushed, links)), max(counts, default=0), damaged, talk)


def _bragg(directory: Path, fakes: Path, *arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, **fake_cuda.environment(fakes, {})}
    command = [sys.executable, "-m", "bragg", *arguments]
    return subprocess.Popen(
        command, cwd=directory, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _end_of(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=_PATIENCE_S)[0].strip()


def _child_of(parent: subprocess.Popen[str]) -> int | None:
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until = time.monotonic() + _PATIENCE_S
    while parent.poll() is None and time.monotonic() < until:
        with suppress(OSError):
            if pids := children.read_text().split():
                return int(pids[0])
        time.sleep(0.01)
    return None


def _wait_for_end(pid: int | None) -> None:
    until = time.monotonic() + _PATIENCE_S
    while pid is not None and Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            raise TimeoutError(f"process {pid} does not end")
        time.sleep(0.02)


def _link_captures(directory: Path) -> list[Path]:
    links = []
    for number, capture in enumerate(directory.glob(".bragg-*/*.part")):
        link = directory / f"linked-{number}"
        with suppress(FileNotFoundError):  # it has just become a profile
            link.hardlink_to(capture)
            links.append(link)
    return links


def _link_when_there(directory: Path, chance: random.Random) -> list[Path]:
    until = time.monotonic() + _PATIENCE_S
    while not (links := _link_captures(directory)) and time.monotonic() < until:
        if list(directory.glob("*.bragg")):
            break
        time.sleep(0.01)
    time.sleep(chance.uniform(0.0, 0.3))
    return links


def _flushed(capture: Path) -> int:
    """Counts of launches and scopes in the METRICS of a capture, as native/data/CAPTURE.md draws it."""
    data, at = capture.read_bytes(), 16
    last: dict[tuple[int, int], int] = {}
    while at + 24 <= len(data):
        magic, kind, _, rows, size, crc, header_crc = struct.unpack_from("<4sHHIIII", data, at)
        payload = data[at + 24 : at + 24 + size]
        if magic != b"CHNK" or zlib.crc32(data[at : at + 20]) != header_crc or zlib.crc32(payload) != crc:
            break
        if kind == _METRICS:
            narrow = -(-rows * 4 // 8) * 8
            node = np.frombuffer(payload, np.uint32, rows, 8)
            group = np.frombuffer(payload, np.uint32, rows, 8 + narrow)
            count = np.frombuffer(payload, np.uint64, rows, 8 + 2 * narrow)
            last.update(zip(zip(node.tolist(), group.tolist(), strict=True), count.tolist(), strict=True))
        at += 24 + -(-size // 8) * 8
    return sum(count for (_, group), count in last.items() if group in (1, 2))


def _profiles(directory: Path) -> tuple[list[int], list[str]]:
    counts, damaged = [], []
    for path in directory.glob("[!.]*.bragg"):
        try:
            profile = load(path)
            profile.check()
            counts.append(sum(int(profile.own(name).sum()) for name in _COUNTS & profile.metrics.keys()))
        except Exception as error:  # noqa: BLE001 (whatever is wrong with it)
            damaged.append(f"{path.name}: {error}")
    return counts, damaged
