"""How long programs took whose steps are not comparable."""

from __future__ import annotations

import pytest

from bragg import formats
from bragg.analyze.comparing.gates import Gate, Gated, Verdict
from bragg.analyze.comparing.program_time import ProgramTime, program_time
from bragg.views.text.diff_text import program_lines
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS


def verdict(before: float, after: float) -> Verdict:
    return Verdict(Gate(Gated.WALL), "wall_time", "ns", before, after, 0.0, 0.99, 0)


def test_where_gpus_wait_in_both_steady_states_their_time_does_not_decide() -> None:
    wall = verdict(20e9, 30e9)
    told = program_lines(ProgramTime(wall, (15_000_000_000, 27_000_000_000), (0.784, 0.99)))
    assert told[1] == (
        "the steady state: 15.0 s before, 27.0 s after; the GPU waits for 78.4 % and 99.0 % of it: "
        "gpu_time does not decide how long they take"
    )
    assert program_lines(ProgramTime(wall, (1, 1), (0.3, 0.99)))[1].endswith(
        "the GPU waits for 30.0 % and 99.0 % of it"
    )
    assert len(program_lines(ProgramTime(wall))) == 1


def test_the_steady_state_of_a_recording_tells_how_long_gpus_wait() -> None:
    slow, fast = (
        formats.load(RECORDINGS[0].parent / f"texts/h100-protein_embed_{name}.bragg") for name in ("slow", "fast")
    )
    time = program_time([slow], [fast])
    assert time
    assert time.steady_ns == (7_541_358_592, 12_373_196_800)
    assert time.waits == (pytest.approx(0.140, abs=1e-3), pytest.approx(0.941, abs=1e-3))
    assert not time.is_of_host
    assert program_time([profile_from_text("root\n  f host=4s")], [fast]) is None
