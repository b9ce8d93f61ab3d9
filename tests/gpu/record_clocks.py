"""Keeps what a kernel with clocks stored, for tests without a GPU.

    bragg run --instrument=softmax --instrument-buffer=4 --instrument-budget=1.0 \\
        tests/gpu/record_clocks.py softmax FILE.npz

The file has the PTX, the headers and the frames of the launch, which blocks wrote, and what was made of it.
"""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bragg.record.instrument import timed_kernel

PROGRAM = Path(__file__).parent / "programs" / "timed_kernel.py"
NAME, FILE = sys.argv[1:]
summed = timed_kernel.summed


def keep(headers: bytes, frames: bytes, instrumented: Any, plan: Any, **options: Any) -> dict[str, Any]:
    """As `summed`, which it calls."""
    told = summed(headers, frames, instrumented, plan, **options)
    np.savez_compressed(
        FILE,
        ptx=np.array(PTX),
        headers=np.frombuffer(headers, np.uint8),
        frames=np.frombuffer(frames, np.uint8),
        plan=np.array(json.dumps(asdict(plan))),
        told=np.array(json.dumps(told)),
    )
    return told


timed_kernel.summed = keep  # type: ignore[assignment]
sys.argv = [str(PROGRAM), NAME]
program = runpy.run_path(str(PROGRAM), run_name="__main__")
PTX = program["launcher"](NAME)[0]().asm["ptx"]
