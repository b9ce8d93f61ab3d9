"""How long the readings of clocks take to be summed: as many as an 8192 matrix product stores with all its clocks.

4,096 blocks of four warps pass 128 times through a loop of eight stretches, which are nine readings: 16.8 million
events. They are made here and laid out as a kernel stores them, so that no GPU is needed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import harness

BLOCKS, WARPS, TURNS, STRETCHES = 4096, 4, 128, 8
STRETCH_CYCLES, TURN_CYCLES = 100, 1000
REPEATS = 5


def stored(frame_words: int) -> tuple[bytes, bytes]:
    """Headers and frames of the launch.

    Args:
        frame_words: That the readings of a turn take, with their first word and what fills them up.
    """
    from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC
    from bragg.code.instrument.storing import FRAME, WARP_BYTES

    n_warps, n_reads = BLOCKS * WARPS, STRETCHES + 1
    headers = np.zeros((n_warps, HEADER_BYTES // 8), np.uint64)
    headers[:, 0] = 1
    headers[:, 2:4] = 1 + TURNS * TURN_CYCLES // 2, TURNS * TURN_CYCLES
    words = headers.view(np.uint32)
    words[:, 8], words[:, 11] = MAGIC, 4 * TURNS * frame_words
    words[:, 9], words[:, 10] = np.arange(n_warps) // WARPS % 132, np.arange(n_warps) // WARPS
    frames = np.zeros((n_warps, WARP_BYTES // 4), np.uint32)
    turns = frames[:, : TURNS * frame_words].reshape(n_warps, TURNS, frame_words)
    turns[:, :, 0] = FRAME | n_reads
    turns[:, :, 1 : 1 + n_reads] = np.arange(TURNS)[:, None] * TURN_CYCLES + np.arange(n_reads) * STRETCH_CYCLES
    return headers.tobytes(), frames.tobytes()


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file for the result")
    given = parser.parse_args()
    from bragg.code.instrument.rewriting import Instrumented
    from bragg.code.instrument.segments import Frame, Segment
    from bragg.record.instrument.buffers import Plan
    from bragg.record.instrument.summing import summed

    stretches = tuple(Segment("smem", False, (), True, number, number + 1) for number in range(STRETCHES))
    frame = Frame(stretches, tuple((number, True) for number in range(STRETCHES + 1)), (STRETCHES + 1, True))
    kernel, plan = Instrumented("", [frame]), Plan(BLOCKS, WARPS, 0, 0)
    headers, frames = stored(frame.n_stored_words)
    times = [harness.seconds(lambda: summed(headers, frames, kernel, plan)) for _ in range(REPEATS)]
    found = summed(headers, frames, kernel, plan)
    events = sum(each["count"] for each in found["segments"])
    cycles = sum(sum(each["cycles"]) for each in found["segments"])
    assert (events, cycles) == (BLOCKS * WARPS * TURNS * STRETCHES, BLOCKS * WARPS * TURNS * STRETCHES * STRETCH_CYCLES)
    row = {
        "events": events,
        "stored_mb": round((len(headers) + len(frames)) / 1e6),
        "median_s": round(float(np.median(times)), 2),
    }
    harness.report("clock_decoding", [row | {"longest_s": round(max(times), 2)}], given.out)


if __name__ == "__main__":
    main()
