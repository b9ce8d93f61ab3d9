"""Records pairs of kernels on a GPU, and compares estimated gains with measured ones.

python -m tests.gpu.kernel_pairs DIRECTORY [RULE...]    keeps the recordings in DIRECTORY

Grids that are too small or leave a wave empty are left out: their twins do other work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bragg
from bragg.errors import BraggError
from tests.support.compiled_variants import line_of
from tests.support.kernel_pairs import PAIRS, Pair

PROGRAM = Path(__file__).parent / "programs" / "kernel_pair.py"
OTHER_WORK = ("few-blocks", "tail-wave")
LIMIT_S = 120


def record(number: int, side: str, output: Path) -> tuple[float, list[dict[str, Any]]]:
    """GPU time of a launch, and what is found."""
    run = [sys.executable, "-m", "bragg", "run", "-o", str(output), "--force", str(PROGRAM), str(number), side]
    subprocess.run(run, capture_output=True, timeout=LIMIT_S, check=True)
    analyze = [sys.executable, "-m", "bragg", "analyze", str(output), "--json", "--least-gain", "0"]
    printed = subprocess.run(analyze, capture_output=True, timeout=LIMIT_S, check=True, text=True).stdout
    (answer,) = json.loads(printed)["profiles"]
    profile, pair = bragg.load(output), PAIRS[number]
    name = (pair.broken if side == "broken" else pair.repaired).name
    frames = [row for row, each in enumerate(profile.tree.frames.name) if each.partition("<")[0] == name]
    nodes = [node for node, frame in enumerate(profile.tree.frame.tolist()) if frame in frames]
    time_ns, count = (float(profile.own(metric)[nodes].sum()) for metric in ("gpu_time", "gpu_count"))
    return time_ns / count, answer["findings"]


def compare(number: int, pair: Pair, directory: Path) -> str:
    """One line on a pair."""
    sides = {
        side: record(number, side, directory / f"{number}-{pair.rule}-{side}.bragg") for side in ("broken", "repaired")
    }
    (slow_ns, slow), (fast_ns, fast) = sides["broken"], sides["repaired"]
    found = [each for each in slow if each["rule"] == pair.rule]
    places = [found[0], *found[0].get("places", [])] if found else []
    lines = [place.get("line", 0) for place in places if place.get("file", "") != str(PROGRAM)]
    line = lines[0] if lines else 0
    is_right = bool(found) and (not pair.mark or line == line_of(pair.broken.kernel, pair.mark))
    alarms = [each["rule"] for each in fast if each["rule"] in {one.rule for one in PAIRS}]
    gain = (found[0].get("gain") or {}).get("share") if found else None
    estimated = "n/a" if gain is None else f"{gain * 100:.0f} %"
    return (
        f"{pair.rule} {pair.broken.name}: {'found' if is_right else f'MISSED (line {line})'}, "
        f"twin {'silent' if not alarms else 'FALSE ALARM ' + ' '.join(alarms)}; "
        f"estimated {estimated}, measured {(1 - fast_ns / slow_ns) * 100:.0f} % of {slow_ns / 1000:.0f} us"
    )


def main() -> None:
    """Compare all pairs, or those of some rules."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for number, pair in enumerate(PAIRS):
        if pair.rule in OTHER_WORK or (sys.argv[2:] and pair.rule not in sys.argv[2:]):
            continue
        try:
            print(compare(number, pair, directory), flush=True)
        except (subprocess.SubprocessError, BraggError, ZeroDivisionError, ValueError) as error:
            print(f"{pair.rule} {pair.broken.name}: failed: {error}", flush=True)


if __name__ == "__main__":
    main()
