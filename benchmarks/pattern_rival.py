"""What PyTorch's own patterns say of the slow programs and their repaired twins that `bragg analyze` is tested with.

python benchmarks/pattern_rival.py [--out FILE] [NAME...]

Each program runs in a process of its own under `torch.profiler` with stacks, shapes and memory, as its patterns
(`torch.profiler._pattern_matcher`) need. A defect counts as found if a pattern matches in the slow program and not
in the twin. Programs of JAX have no such traces and count as missed.
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "gpu" / "programs" / "slow"
LIMIT_S = 60


def matched(program: Path) -> dict[str, int]:
    """How often each pattern matches in a program: in this process."""
    import torch
    from torch.profiler import _pattern_matcher as patterns

    with torch.profiler.profile(with_stack=True, record_shapes=True, profile_memory=True) as profiler:
        runpy.run_path(str(program), run_name="__main__")
    found = {}
    for name in sorted(vars(patterns)):
        kind = getattr(patterns, name)
        if name.endswith("Pattern") and name not in ("Pattern", "NamePattern"):
            found[name.removesuffix("Pattern")] = len(kind(profiler).matched_events())
    return {name: count for name, count in found.items() if count}


def in_process(program: Path) -> dict[str, int] | None:
    """The same in a process of its own; None: it failed."""
    command = [sys.executable, __file__, "--program", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    except subprocess.SubprocessError:
        return None
    found: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Run all programs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--program", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.program:
        print(json.dumps(matched(arguments.program)))
        return
    names = arguments.names or sorted(path.name.removesuffix("_slow.py") for path in PROGRAMS.glob("*_slow.py"))
    told = {}
    for name in names:
        slow, fast = (in_process(PROGRAMS / f"{name}_{side}.py") for side in ("slow", "fast"))
        told[name] = {"slow": slow, "fast": fast, "is_found": bool(slow and slow.keys() - (fast or {}).keys())}
        print(name, told[name], flush=True)
    print(f"{sum(bool(each['is_found']) for each in told.values())} of {len(told)}")
    if arguments.out:
        arguments.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
