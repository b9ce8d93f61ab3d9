"""Recordings of which a process is killed at a random moment: is what was flushed in the profile? No GPU needed.

The rounds of `tests/integration/test_killed.py`, as many as wished, from a seed on. What failed is printed with its
mode and seed, by which the round can be repeated. Build the fakes with `make fakes`. Exit code 1: something was lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import harness

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.killed_runs import MODES, kill_at_random


def fault_of(mode: str, seed: int, directory: Path) -> dict[str, Any] | None:
    """One round; None: all that was flushed has been recovered."""
    try:
        left = kill_at_random(mode, seed, directory / f"{mode}-{seed}", harness.FAKES)
    except Exception as error:  # noqa: BLE001 (whatever it is, the other rounds go on)
        return {"mode": mode, "seed": seed, "error": repr(error)}
    if left.recovered >= left.flushed and not left.damaged:
        return None
    return {"mode": mode, "seed": seed, "flushed": left.flushed, "recovered": left.recovered, "talk": left.talk[-500:]}


def main() -> int:
    """Kill, count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one; each mode has it once")
    parser.add_argument("--seconds", type=float, default=3_600, help="no round begins later")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds = [(mode, options.seed + number // len(MODES)) for number, mode in _numbered(options.kills)]
    until = time.monotonic() + options.seconds
    kills: Counter[str] = Counter()
    faults: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(options.jobs) as pool:

        def play(round_: tuple[str, int]) -> None:
            if time.monotonic() > until:
                return
            fault = fault_of(*round_, Path(directory))
            kills[round_[0]] += 1
            if fault is not None:
                faults.append(fault)
                print(json.dumps(fault), file=sys.stderr, flush=True)

        list(pool.map(play, rounds))
    result = {"machine": harness.machine(), "kills": dict(kills), "total": kills.total(), "faults": faults}
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    return 1 if faults else 0


def _numbered(kills: int) -> list[tuple[int, str]]:
    return [(number, MODES[number % len(MODES)]) for number in range(kills)]


if __name__ == "__main__":
    sys.exit(main())
