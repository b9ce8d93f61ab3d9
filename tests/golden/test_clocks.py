"""What kernels with clocks stored on an H100 is read as it was then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.rewriting import instrument
from bragg.record.instrument.buffers import Plan
from bragg.record.instrument.levels import LEVELS
from bragg.record.instrument.summing import summed

DIRECTORY = Path(__file__).parent / "clocks"


@pytest.mark.parametrize("name", ["h100_softmax"])
def test_what_a_gpu_stored_is_read(name: str) -> None:
    kept = np.load(DIRECTORY / f"{name}.npz")
    plan = json.loads(str(kept["plan"]))
    own = Plan(**{**plan, "frame_warps": tuple(plan["frame_warps"])})
    instrumented = instrument(read_kernel(str(kept["ptx"])), LEVELS[0].selection)
    found = summed(kept["headers"].tobytes(), kept["frames"].tobytes(), instrumented, own)
    assert json.loads(json.dumps(found)) == json.loads(str(kept["told"]))
    assert (found["damaged_warps"], found["blocks_with_times"]) == (0, own.header_blocks)
    assert found["segments"]
    assert sum(sum(each["cycles"]) for each in found["segments"]) + found["clock_cycles"] <= found["covered_cycles"]
    assert found["covered_cycles"] <= found["warp_cycles"]
    assert 0.5 < found["clock_ghz"] < 2.1
